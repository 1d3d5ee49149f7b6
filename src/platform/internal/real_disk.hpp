#pragma once
#include <coppice/env/disk.hpp>

namespace coppice {

/// The file systems of this machine. It has no state of its own.
class real_disk final : public disk {
 public:
  result<std::unique_ptr<file>> open(const std::string& path, open_options how) override;
  result<void> rename(const std::string& from, const std::string& to) override;
  result<std::vector<directory_entry>> list(const std::string& path) override;
  result<void> remove(const std::string& path) override;
  result<void> make_directory(const std::string& path) override;
  result<void> sync_directory(const std::string& path) override;
  result<std::uint64_t> free_space(const std::string& path) override;
};

}  // namespace coppice
