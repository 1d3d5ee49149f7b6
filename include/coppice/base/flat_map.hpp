#pragma once
/// A small hash map in one block of memory: open addressing, linear probing, removal without tombstones.
///
/// Links, monitors and timers of a process are kept in such maps: mostly none or one, sometimes a hundred thousand. An
/// empty map owns no memory, and a few entries are searched one after the other, without hashing. Iteration order
/// depends only on the history of the map, so a simulation repeats it exactly. `Value` must be default-constructible;
/// `Hash` must spread its bits well (see `mix`) and define `none`, a key that is never used: it marks free entries.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace coppice {

/// Spreads the bits of a number, so that dense ids make good hashes: the low half of the result depends on all bits.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x *= 0x9e3779b97f4a7c15ULL;
  return x ^ (x >> 32U);
}

template <class Key, class Value, class Hash>
class flat_map {
 public:
  struct entry {
    Key key = Hash::none;
    [[no_unique_address]] Value value{};
    [[nodiscard]] bool used() const noexcept { return key != Hash::none; }
  };

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t bytes() const noexcept { return capacity_ * sizeof(entry); }

  /// The value of `key`, or null.
  [[nodiscard]] Value* find(const Key& key) noexcept {
    entry* e = look_up(key);
    return e != nullptr ? &e->value : nullptr;
  }
  /// Adds `key` unless it is there; true when it was added.
  bool insert(const Key& key, Value value) {
    if (look_up(key) != nullptr) return false;
    if (capacity_ <= row ? size_ == capacity_ : (size_ + 1) * 16 > capacity_ * 13) grow();
    entry& e = capacity_ <= row ? entries_[size_] : entries_[free_place(key)];
    e.key = key;
    e.value = std::move(value);
    ++size_;
    return true;
  }
  /// Removes `key`; true when it was there.
  bool erase(const Key& key) noexcept {
    entry* e = look_up(key);
    if (e != nullptr) remove(*e);
    return e != nullptr;
  }
  /// Removes `key` and returns its value; nothing if it was not there.
  [[nodiscard]] std::optional<Value> take(const Key& key) noexcept {
    entry* e = look_up(key);
    if (e == nullptr) return std::nullopt;
    std::optional<Value> value{std::move(e->value)};
    remove(*e);
    return value;
  }
  void clear() noexcept {
    entries_.reset();
    size_ = capacity_ = 0;
  }
  /// Calls `visit(key, value)` for each entry; `visit` must not change the map.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t i = 0; i < capacity_; ++i)
      if (entries_[i].used()) visit(entries_[i].key, entries_[i].value);
  }

 private:
  static constexpr std::size_t row = 4;  // up to this capacity, entries are kept one after the other, without hashing

  [[nodiscard]] entry* look_up(const Key& key) const noexcept {
    if (capacity_ <= row) {
      for (std::size_t i = 0; i < size_; ++i)
        if (entries_[i].key == key) return &entries_[i];
      return nullptr;
    }
    std::size_t at = home_of(key);
    for (; entries_[at].used(); at = next(at))
      if (entries_[at].key == key) return &entries_[at];
    return nullptr;
  }
  void remove(entry& e) noexcept {
    --size_;
    if (capacity_ > row) return close_gap(static_cast<std::size_t>(&e - entries_.get()));
    if (&e != &entries_[size_]) e = std::move(entries_[size_]);
    entries_[size_] = entry{};
  }
  [[nodiscard]] std::size_t next(std::size_t at) const noexcept { return (at + 1) & (capacity_ - 1); }
  [[nodiscard]] std::size_t home_of(const Key& key) const noexcept { return Hash{}(key) & (capacity_ - 1); }
  [[nodiscard]] std::size_t free_place(const Key& key) const noexcept {
    std::size_t at = home_of(key);
    while (entries_[at].used()) at = next(at);
    return at;
  }
  /// Closes a hole: moves up each entry behind it whose probe sequence passes the hole.
  void close_gap(std::size_t hole) noexcept {
    for (std::size_t at = next(hole); entries_[at].used(); at = next(at)) {
      const std::size_t home = home_of(entries_[at].key);
      const bool passes_hole = hole <= at ? (home <= hole || home > at) : (home <= hole && home > at);
      if (!passes_hole) continue;
      entries_[hole] = std::move(entries_[at]);
      hole = at;
    }
    entries_[hole] = entry{};
  }
  void grow() {
    const std::size_t before = capacity_;
    const std::size_t wanted = before == 0 ? 1 : before < 64 ? before * 4 : before * 2;
    auto old = std::exchange(entries_, std::make_unique<entry[]>(wanted));
    capacity_ = wanted;
    for (std::size_t i = 0; i < before; ++i)
      if (old[i].used()) entries_[wanted <= row ? i : free_place(old[i].key)] = std::move(old[i]);
  }

  std::unique_ptr<entry[]> entries_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace coppice
