#include "internal/file_image.hpp"

#include <algorithm>

namespace coppice::sim {

namespace {

/// How far something was written back, from 0 to `last`. The ends are likely even if `last` is large: most mistakes of
/// programs need the oldest or the newest state of one thing together with another state of something else.
std::size_t written_back(std::size_t last, crash_kind kind, dice& by) {
  switch (kind) {
    case crash_kind::keeps_all: return last;
    case crash_kind::loses_all: return 0;
    case crash_kind::loses_some: break;
  }
  switch (by.below(3)) {
    case 0: return 0;
    case 1: return last;
    default: return by.below(last + 1);
  }
}

}  // namespace

/// The part of a sector that is within the contents `of`.
std::span<std::byte> file_image::sector(std::vector<std::byte>& of, std::uint64_t index) const noexcept {
  const std::uint64_t begin = std::min<std::uint64_t>(index * sector_size, of.size());
  const std::uint64_t end = std::min<std::uint64_t>(begin + sector_size, of.size());
  return std::span{of}.subspan(begin, end - begin);
}

std::size_t file_image::read(std::uint64_t offset, std::span<std::byte> into) const {
  if (offset >= now_.size()) return 0;
  const std::size_t n = std::min<std::uint64_t>(into.size(), now_.size() - offset);
  std::ranges::copy(std::span{now_}.subspan(offset, n), into.begin());
  return n;
}

void file_image::keep_version(std::uint64_t index, bool cut) {
  const auto bytes = sector(now_, index);
  dirty_[index].push_back({.change = changes_, .cut = cut, .bytes = {bytes.begin(), bytes.end()}});
}

void file_image::write(std::uint64_t offset, std::span<const std::byte> data) {
  if (data.empty()) return;
  ++changes_;
  const std::uint64_t end = offset + data.size();
  if (end > now_.size()) {
    now_.resize(end);
    sizes_.push_back({changes_, end});
  }
  std::ranges::copy(data, now_.begin() + static_cast<std::ptrdiff_t>(offset));
  for (std::uint64_t s = offset / sector_size; s * sector_size < end; ++s) keep_version(s, false);
}

void file_image::truncate(std::uint64_t size) {
  ++changes_;
  const std::uint64_t before = now_.size();
  now_.resize(size);
  sizes_.push_back({changes_, size});
  for (std::uint64_t s = size / sector_size; s * sector_size < before; ++s) keep_version(s, true);
}

void file_image::sync() {
  synced_.resize(now_.size());
  std::erase_if(dirty_, [this](const auto& entry) {
    const auto& [index, versions] = entry;
    if (std::ranges::all_of(versions, &version::forgotten)) return false;
    std::ranges::copy(sector(now_, index), sector(synced_, index).begin());
    return true;
  });
  sizes_.clear();
}

void file_image::fail_sync() noexcept {
  for (auto& [index, versions] : dirty_)
    for (version& v : versions) v.forgotten = true;
}

/// The version that a sector has after a crash; null: the synced one. `sized_by` is the last change of the size that
/// the file keeps. Cuts up to it are in force, so older versions of a cut sector are impossible; later cuts have not
/// happened.
const file_image::version* file_image::choose(const std::vector<version>& from, std::uint64_t sized_by, crash_kind kind,
                                              dice& by) {
  std::vector<const version*> possible{nullptr};
  for (const version& v : from) {
    if (v.cut && v.change > sized_by) continue;
    if (v.cut) possible.assign(1, nullptr);
    possible.push_back(&v);
  }
  return possible[written_back(possible.size() - 1, kind, by)];
}

void file_image::crash(crash_kind kind, dice& by, crash_count& count) {
  const std::size_t sizes_kept = written_back(sizes_.size(), kind, by);
  for (const size_change& each : std::span{sizes_}.first(sizes_kept)) synced_.resize(each.size);
  // Without a change of the size since the last sync, all cuts before that sync are in force.
  const bool all_sizes = sizes_kept == sizes_.size();
  const std::uint64_t sized_by = all_sizes ? changes_ : sizes_[sizes_kept].change - 1;
  for (const auto& [index, versions] : dirty_) {
    const version* left = choose(versions, sized_by, kind, by);
    ++(left == nullptr || left != &versions.back() ? count.lost : count.kept);
    if (left == nullptr) continue;
    const auto place = sector(synced_, index);
    const std::size_t n = std::min(place.size(), left->bytes.size());
    std::ranges::copy(std::span{left->bytes}.first(n), place.begin());
    std::ranges::fill(place.subspan(n), std::byte{0});
  }
  now_ = synced_;
  dirty_.clear();
  sizes_.clear();
}

}  // namespace coppice::sim
