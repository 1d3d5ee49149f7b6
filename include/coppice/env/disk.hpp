#pragma once
/// Files and directories. All calls block their thread: make them in a lane (`env/lanes.hpp`) or in blocking work,
/// never in a process itself.
///
/// What a crash of the machine leaves:
/// - data is safe once `file::sync` has succeeded after it was written. Until then any part of it may be missing;
/// - a new name, a rename and a removal are safe once `sync_directory` of the directory has succeeded (of both
///   directories for a rename between two). Until then they may be undone. Each is atomic: it has happened or it has
///   not;
/// - so a file is replaced by writing a new one, `sync` of it, `rename` over the old one and `sync_directory`;
/// - when `sync` has failed, do not try again on the same file: the system may have dropped the data, and the next
///   `sync` succeeds without it. Write the data again, to another file, or stop.
///
/// The simulated disk (`sim/disk.hpp`) uses all these permissions.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <coppice/base/error.hpp>

namespace coppice {

/// Why a call failed. The text of the error names the call, the path and the reason that the system gave.
enum class disk_errc : unsigned char {
  not_found,        ///< there is no such file or directory
  exists,           ///< the name is in use
  denied,           ///< no permission, a read-only file system, or a file that was not opened for this
  no_space,         ///< the disk is full, or a quota or a size limit is reached. A part may have been written
  input_output,     ///< the device failed. A part may have been written
  not_a_directory,  ///< a part of the path is a file
  is_a_directory,   ///< a file was expected
  not_empty,        ///< a directory that still has entries
  too_many_open,    ///< the program or the system has no file descriptors left
  invalid,          ///< options or a path that make no sense
  other,            ///< anything else; see the text
};

[[nodiscard]] constexpr std::string_view to_string(disk_errc code) noexcept {
  switch (code) {
    case disk_errc::not_found: return "not_found";
    case disk_errc::exists: return "exists";
    case disk_errc::denied: return "denied";
    case disk_errc::no_space: return "no_space";
    case disk_errc::input_output: return "input_output";
    case disk_errc::not_a_directory: return "not_a_directory";
    case disk_errc::is_a_directory: return "is_a_directory";
    case disk_errc::not_empty: return "not_empty";
    case disk_errc::too_many_open: return "too_many_open";
    case disk_errc::invalid: return "invalid";
    case disk_errc::other: return "other";
  }
  return "unknown";
}

template <>
struct error_category<disk_errc> {
  static constexpr std::string_view name = "disk";
  static constexpr disk_errc last = disk_errc::other;
};

/// How a file is opened: for reading only, unless the options say otherwise.
struct open_options {
  bool read = true;
  bool write = false;      ///< `write` and `truncate` at any place; not together with `append`
  bool append = false;     ///< `append` and `truncate`. Appends of several programs or handles do not overlap
  bool create = false;     ///< creates the file if it is not there; needs `write` or `append`
  bool exclusive = false;  ///< with `create`: fails with `exists` if the file is there
};

/// What is wrong with the options; empty: nothing. Both disks refuse such options as `invalid`.
[[nodiscard]] constexpr std::string_view fault_of(const open_options& how) noexcept {
  if (!how.read && !how.write && !how.append) return "neither read, write nor append is set";
  if (how.write && how.append) return "write and append exclude each other";
  if (how.create && !how.write && !how.append) return "create needs write or append";
  if (how.exclusive && !how.create) return "exclusive needs create";
  return {};
}

/// An open file. Its destructor closes it and releases its lock, but does not sync it.
/// Thread safety: any thread.
class file {
 public:
  virtual ~file() = default;
  /// Reads from `offset` until `into` is full or the file ends; gives the number of bytes.
  [[nodiscard]] virtual result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into) = 0;
  /// Writes all of `data`. A gap between the end of the file and `offset` reads as zeros. If it fails, any part of
  /// `data` may have been written.
  [[nodiscard]] virtual result<void> write(std::uint64_t offset, std::span<const std::byte> data) = 0;
  /// Writes all of `data` at the end of a file that was opened with `append`. If it fails, a part of `data` may have
  /// been written.
  [[nodiscard]] virtual result<void> append(std::span<const std::byte> data) = 0;
  /// Waits until everything written so far, and the size, survive a crash. It does not cover the name of a new file.
  [[nodiscard]] virtual result<void> sync() = 0;
  /// Cuts the file at `size`, or extends it with zeros.
  [[nodiscard]] virtual result<void> truncate(std::uint64_t size) = 0;
  [[nodiscard]] virtual result<std::uint64_t> size() = 0;
  /// Locks the file against `lock` through all other handles, in this program and in others, until this handle is
  /// destroyed or the program ends. Never waits; false: another handle has the lock.
  [[nodiscard]] virtual result<bool> lock() = 0;
};

enum class entry_kind : std::uint8_t { file, directory, other };
struct directory_entry {
  std::string name;  ///< without the directory
  entry_kind kind = entry_kind::file;
  friend bool operator==(const directory_entry&, const directory_entry&) = default;
};

/// Thread safety: any thread.
class disk {
 public:
  virtual ~disk() = default;
  /// Errors: `not_found`; `exists` with `exclusive`; `is_a_directory`; `denied`; `too_many_open`; `no_space`; `invalid`
  /// for options that exclude each other.
  [[nodiscard]] virtual result<std::unique_ptr<file>> open(const std::string& path, open_options how) = 0;
  /// Gives a file or a directory another name, on the same file system. A file or an empty directory that has the name
  /// `to` is replaced; no reader finds `to` missing meanwhile.
  [[nodiscard]] virtual result<void> rename(const std::string& from, const std::string& to) = 0;
  /// The entries of a directory, sorted by name, without `.` and `..`.
  [[nodiscard]] virtual result<std::vector<directory_entry>> list(const std::string& path) = 0;
  /// Removes a file or an empty directory. A file that is open stays usable through its handles.
  [[nodiscard]] virtual result<void> remove(const std::string& path) = 0;
  /// Creates one directory; the directory it is in must exist.
  [[nodiscard]] virtual result<void> make_directory(const std::string& path) = 0;
  /// Waits until all changes of names in the directory so far survive a crash. It covers neither the contents of its
  /// files nor the name of the directory itself.
  [[nodiscard]] virtual result<void> sync_directory(const std::string& path) = 0;
  /// The number of bytes that this program can still write on the file system of the directory `path`.
  [[nodiscard]] virtual result<std::uint64_t> free_space(const std::string& path) = 0;
};

}  // namespace coppice
