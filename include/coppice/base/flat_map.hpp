#pragma once
/// A small hash map in one block of memory: open addressing, linear probing, removal without tombstones.
///
/// Links, monitors and timers of a process live in such maps: mostly none or one, sometimes a hundred thousand. An
/// empty map owns nothing. Iteration order depends only on the history of the map, so a simulation repeats it exactly.
/// `Key` and `Value` must be default-constructible; `Hash` must spread its bits well (see `mix`).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace coppice {

/// Spreads the bits of a number over the whole word, so that dense ids make good hashes.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x ^= x >> 32;
  x *= 0xe9846af9b1a615dULL;
  x ^= x >> 32;
  x *= 0xe9846af9b1a615dULL;
  x ^= x >> 28;
  return x;
}

template <class Key, class Value, class Hash>
class flat_map {
 public:
  struct entry {
    Key key{};
    Value value{};
    bool used = false;
  };

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t bytes() const noexcept { return capacity_ * sizeof(entry); }

  /// The value of `key`, or null.
  [[nodiscard]] Value* find(const Key& key) noexcept {
    if (size_ == 0) return nullptr;
    entry& e = entries_[place_of(key)];
    return e.used ? &e.value : nullptr;
  }
  /// Adds `key` unless it is there; true when it was added.
  bool insert(const Key& key, Value value) {
    if ((size_ + 1) * 4 > capacity_ * 3) grow();
    entry& e = entries_[place_of(key)];
    if (e.used) return false;
    e.key = key;
    e.value = std::move(value);
    e.used = true;
    ++size_;
    return true;
  }
  /// Removes `key`; true when it was there.
  bool erase(const Key& key) noexcept {
    if (size_ == 0) return false;
    std::size_t hole = place_of(key);
    if (!entries_[hole].used) return false;
    // Entries behind the hole move up when the hole lies on their way from where their hash wants them.
    for (std::size_t at = next(hole); entries_[at].used; at = next(at)) {
      const std::size_t home = home_of(entries_[at].key);
      const bool passes_hole = hole <= at ? (home <= hole || home > at) : (home <= hole && home > at);
      if (!passes_hole) continue;
      entries_[hole] = std::move(entries_[at]);
      hole = at;
    }
    entries_[hole] = entry{};
    --size_;
    return true;
  }
  void clear() noexcept {
    entries_.reset();
    size_ = capacity_ = 0;
  }
  /// Calls `visit(key, value)` for each entry; `visit` must not change the map.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t i = 0; i < capacity_; ++i)
      if (entries_[i].used) visit(entries_[i].key, entries_[i].value);
  }

 private:
  [[nodiscard]] std::size_t next(std::size_t at) const noexcept { return (at + 1) & (capacity_ - 1); }
  [[nodiscard]] std::size_t home_of(const Key& key) const noexcept { return Hash{}(key) & (capacity_ - 1); }
  [[nodiscard]] std::size_t place_of(const Key& key) const noexcept {
    std::size_t at = home_of(key);
    while (entries_[at].used && !(entries_[at].key == key)) at = next(at);
    return at;
  }
  void grow() {
    const std::size_t before = capacity_;
    auto old = std::exchange(entries_, std::make_unique<entry[]>(before == 0 ? 4 : before * 2));
    capacity_ = before == 0 ? 4 : before * 2;
    for (std::size_t i = 0; i < before; ++i)
      if (old[i].used) entries_[place_of(old[i].key)] = std::move(old[i]);
  }

  std::unique_ptr<entry[]> entries_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace coppice
