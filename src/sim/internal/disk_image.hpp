#pragma once
#include <map>
#include <set>
#include <string>

#include <coppice/env/disk.hpp>

#include "file_image.hpp"

namespace coppice::sim {

using file_number = std::uint64_t;

/// The files and directories of a disk: as the program sees them, and what a crash may leave.
///
/// A change of names (create, rename, remove) is one atomic operation on one or two directories. Until a directory is
/// synced its operations are pending. At a crash each may be lost, and then all later ones on the same directory are
/// lost too, as in a journal. Different directories are independent, except that an operation on two never happens in
/// one only, and never moves a file into a directory that is lost itself.
///
/// Its functions know nothing of injected errors: they do what the program asked, or say why a file system would
/// refuse it.
class disk_image {
 public:
  disk_image();

  template <class T>
  using outcome = std::expected<T, disk_errc>;

  [[nodiscard]] outcome<file_number> open(const std::string& path, const open_options& how);
  /// A handle has been destroyed.
  void close(file_number number, const void* handle);
  /// Whether `handle` has the lock of the file now.
  [[nodiscard]] bool lock(file_number number, const void* handle);
  [[nodiscard]] outcome<void> rename(const std::string& from, const std::string& to);
  [[nodiscard]] outcome<std::vector<directory_entry>> list(const std::string& path) const;
  [[nodiscard]] outcome<void> remove(const std::string& path);
  [[nodiscard]] outcome<void> make_directory(const std::string& path);
  [[nodiscard]] outcome<void> sync_directory(const std::string& path);
  [[nodiscard]] outcome<void> check_directory(const std::string& path) const;
  /// Bytes of all files that have a name.
  [[nodiscard]] std::uint64_t used() const;
  [[nodiscard]] file_image& contents(file_number number) { return inodes_.at(number).contents; }
  /// All handles are gone afterwards.
  [[nodiscard]] crash_count crash(crash_kind kind, dice& by);

 private:
  using names = std::map<std::string, file_number>;
  struct inode {
    bool directory = false;
    std::size_t handles = 0;
    const void* locked_by = nullptr;  // the handle that has the lock
    file_image contents;
    names now;
    names synced;
  };
  /// One name in one directory; `target` 0: the name is removed.
  struct link_change {
    file_number directory = 0;
    std::string name;
    file_number target = 0;
  };
  struct operation {
    std::vector<link_change> changes;
    std::set<file_number> directories;  // whose order it keeps
    file_number made = 0;               // the directory that it creates
  };
  /// A path, resolved up to its last part.
  struct place {
    file_number directory = 0;
    std::string name{};            // empty: the root, or a path that ends with `..`
    file_number found = 0;         // 0: there is nothing with that name
    bool wants_directory = false;  // the path ends with a slash
  };
  static constexpr file_number root = 1;

  [[nodiscard]] outcome<place> resolve(const std::string& path) const;
  [[nodiscard]] outcome<file_number> existing_directory(const std::string& path) const;
  [[nodiscard]] bool is_directory(file_number number) const { return inodes_.at(number).directory; }
  [[nodiscard]] bool is_within(file_number inner, file_number outer) const;
  [[nodiscard]] outcome<void> check_replaced(const place& moved, const place& replaced) const;
  file_number add(bool directory);
  void perform(operation op);
  void make_durable(const operation& op);
  void remove_unused();

  std::map<file_number, inode> inodes_;
  std::vector<operation> pending_;
  file_number last_ = root;
};

}  // namespace coppice::sim
