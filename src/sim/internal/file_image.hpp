#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <coppice/sim/world.hpp>

namespace coppice::sim {

/// How a crash treats changes that were not synced.
enum class crash_kind : std::uint8_t {
  keeps_all,   ///< as if only the program had ended
  loses_all,   ///< nothing had been written back
  loses_some,  ///< the dice decide for each change
};

/// What a crash did, for the trace.
struct crash_count {
  std::uint64_t kept = 0;
  std::uint64_t lost = 0;
};

/// The contents of one file: what the program reads, and what a crash may leave.
///
/// It is a page cache over sectors. Each write makes a new version of each sector it touches. Sectors are written back
/// one by one and in any order, so at a crash each has the last synced version or any later one: that is how a write
/// gets torn. The size is written back apart from the data: a file may have its new size, and zeros in place of data.
class file_image {
 public:
  static constexpr std::size_t sector_size = 512;

  [[nodiscard]] std::uint64_t size() const noexcept { return now_.size(); }
  [[nodiscard]] std::size_t read(std::uint64_t offset, std::span<std::byte> into) const;
  void write(std::uint64_t offset, std::span<const std::byte> data);
  void truncate(std::uint64_t size);
  void sync();
  /// A sync that failed. As in Linux, what was written before it counts as clean from now on: the program still reads
  /// it, but a later sync does not write it, unless its sector is written again.
  void fail_sync() noexcept;
  void crash(crash_kind kind, dice& by, crash_count& count);

 private:
  struct version {
    std::uint64_t change = 0;  // the number of the change that made it
    bool cut = false;          // made by `truncate`
    bool forgotten = false;    // a sync of it has failed
    std::vector<std::byte> bytes;
  };
  struct size_change {
    std::uint64_t change = 0;
    std::uint64_t size = 0;
  };
  [[nodiscard]] std::span<std::byte> sector(std::vector<std::byte>& of, std::uint64_t index) const noexcept;
  void keep_version(std::uint64_t index, bool cut);
  [[nodiscard]] static const version* choose(const std::vector<version>& from, std::uint64_t sized_by, crash_kind kind,
                                             dice& by);

  std::vector<std::byte> now_;
  std::vector<std::byte> synced_;
  std::map<std::uint64_t, std::vector<version>> dirty_;  // by sector
  std::vector<size_change> sizes_;                       // changes of the size since the last sync
  std::uint64_t changes_ = 0;
};

}  // namespace coppice::sim
