// Files and directories of the machine: thin calls that restart after signals, and finish short reads and writes.
#include "internal/real_disk.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "internal/file_descriptor.hpp"

namespace coppice {
namespace {

disk_errc code_of(int number) noexcept {
  switch (number) {
    case ENOENT: return disk_errc::not_found;
    case EEXIST: return disk_errc::exists;
    case EACCES:
    case EPERM:
    case EROFS:
    case EBADF: return disk_errc::denied;  // a file that was not opened for this
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return disk_errc::no_space;
    case EIO: return disk_errc::input_output;
    case ENOTDIR: return disk_errc::not_a_directory;
    case EISDIR: return disk_errc::is_a_directory;
    case ENOTEMPTY: return disk_errc::not_empty;
    case EMFILE:
    case ENFILE: return disk_errc::too_many_open;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP: return disk_errc::invalid;
    default: return disk_errc::other;
  }
}

/// For example "open /data/log: No such file or directory (ENOENT)".
std::unexpected<error> failed(std::string_view what, const std::string& path, int number,
                              const std::string& detail = {}) {
  const char* name = ::strerrorname_np(number);
  const char* words = ::strerrordesc_np(number);
  std::string text{what};
  text.append(" ").append(path).append(": ").append(detail);
  text.append(words != nullptr ? words : "error").append(" (");
  text.append(name != nullptr ? name : std::to_string(number)).append(")");
  return fail(code_of(number), std::move(text));
}

/// Repeats a system call that a signal has interrupted.
template <class Call>
auto restarted(Call call) {
  for (;;) {
    const auto answer = call();
    if (answer != -1 || errno != EINTR) return answer;
  }
}

class real_file final : public file {
 public:
  real_file(file_descriptor fd, std::string path, open_options how)
      : fd_{std::move(fd)}, path_{std::move(path)}, how_{how} {}

  result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into) override {
    std::size_t got = 0;
    while (got < into.size()) {
      const ssize_t n = restarted(
          [&] { return ::pread(fd_.get(), into.data() + got, into.size() - got, static_cast<off_t>(offset + got)); });
      if (n < 0) return failed("read", path_, errno);
      if (n == 0) break;
      got += static_cast<std::size_t>(n);
    }
    return got;
  }
  result<void> write(std::uint64_t offset, std::span<const std::byte> data) override {
    if (!how_.write) return failed("write", path_, EBADF);
    return write_all("write", data, [&](std::size_t from) {
      return ::pwrite(fd_.get(), data.data() + from, data.size() - from, static_cast<off_t>(offset + from));
    });
  }
  result<void> append(std::span<const std::byte> data) override {
    if (!how_.append) return failed("append", path_, EBADF);
    return write_all("append", data,
                     [&](std::size_t from) { return ::write(fd_.get(), data.data() + from, data.size() - from); });
  }
  result<void> sync() override {
    if (restarted([&] { return ::fdatasync(fd_.get()); }) != 0) return failed("sync", path_, errno);
    return {};
  }
  result<void> truncate(std::uint64_t size) override {
    if (!how_.write && !how_.append) return failed("truncate", path_, EBADF);
    if (restarted([&] { return ::ftruncate(fd_.get(), static_cast<off_t>(size)); }) != 0)
      return failed("truncate", path_, errno);
    return {};
  }
  result<std::uint64_t> size() override {
    struct stat found{};
    if (::fstat(fd_.get(), &found) != 0) return failed("size", path_, errno);
    return static_cast<std::uint64_t>(found.st_size);
  }
  /// `flock` and not a record lock: it belongs to this handle, so that two handles of one program exclude each other.
  result<bool> lock() override {
    if (restarted([&] { return ::flock(fd_.get(), LOCK_EX | LOCK_NB); }) == 0) return true;
    if (errno == EWOULDBLOCK) return false;
    return failed("lock", path_, errno);
  }

 private:
  template <class Write>
  result<void> write_all(std::string_view what, std::span<const std::byte> data, Write write) {
    for (std::size_t done = 0; done < data.size();) {
      const ssize_t n = restarted([&] { return write(done); });
      // A write of at least one byte that writes nothing and has no error would be repeated without end.
      if (n <= 0)
        return failed(what, path_, n < 0 ? errno : EIO,
                      std::to_string(done) + " of " + std::to_string(data.size()) + " bytes written: ");
      done += static_cast<std::size_t>(n);
    }
    return {};
  }

  file_descriptor fd_;
  std::string path_;
  open_options how_;
};

int flags_of(const open_options& how) noexcept {
  const bool writes = how.write || how.append;
  int flags = writes ? (how.read ? O_RDWR : O_WRONLY) : O_RDONLY;
  if (how.append) flags |= O_APPEND;
  if (how.create) flags |= O_CREAT;
  if (how.exclusive) flags |= O_EXCL;
  return flags | O_CLOEXEC | O_NOCTTY;
}

entry_kind kind_of(int directory, const dirent& e) {
  if (e.d_type == DT_REG) return entry_kind::file;
  if (e.d_type == DT_DIR) return entry_kind::directory;
  struct stat found{};
  if (e.d_type != DT_UNKNOWN || ::fstatat(directory, e.d_name, &found, AT_SYMLINK_NOFOLLOW) != 0)
    return entry_kind::other;
  if (S_ISREG(found.st_mode)) return entry_kind::file;
  return S_ISDIR(found.st_mode) ? entry_kind::directory : entry_kind::other;
}

}  // namespace

result<std::unique_ptr<file>> real_disk::open(const std::string& path, open_options how) {
  if (const auto fault = fault_of(how); !fault.empty())
    return fail(disk_errc::invalid, "open " + path + ": " + std::string{fault});
  file_descriptor fd{restarted([&] { return ::open(path.c_str(), flags_of(how), 0666); })};
  if (!fd) return failed("open", path, errno);
  struct stat found{};
  if (::fstat(fd.get(), &found) == 0 && S_ISDIR(found.st_mode)) return failed("open", path, EISDIR);
  return std::make_unique<real_file>(std::move(fd), path, how);
}

result<void> real_disk::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return failed("rename", from + " to " + to, errno);
  return {};
}

result<std::vector<directory_entry>> real_disk::list(const std::string& path) {
  const std::unique_ptr<DIR, decltype([](DIR* d) { ::closedir(d); })> opened{::opendir(path.c_str())};
  if (opened == nullptr) return failed("list", path, errno);
  std::vector<directory_entry> all;
  for (;;) {
    errno = 0;                                  // the only way to tell the end from an error
    const dirent* e = ::readdir(opened.get());  // NOLINT(concurrency-mt-unsafe): no other thread has this stream
    if (e == nullptr) break;
    const std::string_view name = e->d_name;
    if (name != "." && name != "..") all.push_back({std::string{name}, kind_of(::dirfd(opened.get()), *e)});
  }
  if (errno != 0) return failed("list", path, errno);
  std::ranges::sort(all, {}, &directory_entry::name);
  return all;
}

result<void> real_disk::remove(const std::string& path) {
  if (::unlink(path.c_str()) == 0) return {};
  if (errno != EISDIR) return failed("remove", path, errno);
  if (::rmdir(path.c_str()) != 0) return failed("remove", path, errno);
  return {};
}

result<void> real_disk::make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0) return failed("make directory", path, errno);
  return {};
}

result<void> real_disk::sync_directory(const std::string& path) {
  const file_descriptor fd{restarted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); })};
  if (fd.get() < 0 || restarted([&] { return ::fsync(fd.get()); }) != 0) return failed("sync directory", path, errno);
  return {};
}

result<std::uint64_t> real_disk::free_space(const std::string& path) {
  struct statvfs found{};
  if (restarted([&] { return ::statvfs(path.c_str(), &found); }) != 0) return failed("free space of", path, errno);
  return std::uint64_t{found.f_bavail} * found.f_frsize;
}

}  // namespace coppice
