#pragma once
/// Where the memory of the pools comes from: spans of 64 KiB, cut from pieces of 2 MiB that the system provides.
///
/// All blocks of a span have one size. A span is small, so that a block that stays in use does not keep much memory
/// from going back to the system; a piece is large, so that the system can use huge pages.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <coppice/runtime/detail/pool.hpp>

#include "chain.hpp"

namespace coppice::detail {

inline constexpr std::size_t span_size = std::size_t{64} << 10U;

/// A span that is in use belongs to a depot, whose lock protects it.
struct span {
  block* free = nullptr;         // its blocks that are in no magazine and in no thread's cache
  std::uint32_t free_count = 0;  // the length of that list
  std::uint32_t carved = 0;      // how many blocks it has
  span* next = nullptr;          // in its depot: spans that have free blocks
  span* prev = nullptr;

  [[nodiscard]] char* begin() const noexcept;
  [[nodiscard]] char* end() const noexcept;
};
span& span_of(const block* b) noexcept;

/// Spans that are not in use. Thread safety: any thread.
class span_store {
 public:
  /// A span without blocks. Throws `std::bad_alloc`.
  [[nodiscard]] span& take();
  void put(span& empty) noexcept;
  /// Gives memory of spans back to the system until those that still have memory take at most `keep` bytes.
  void give_back(std::size_t keep) noexcept;

  /// Bytes of spans that are not in use and still have memory.
  [[nodiscard]] std::size_t unused() const noexcept { return unused_.load(std::memory_order_relaxed); }
  /// Bytes of all spans that have memory.
  [[nodiscard]] std::size_t held() const noexcept { return held_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t given_back() const noexcept { return given_back_.load(std::memory_order_relaxed); }

  struct piece;

 private:
  piece& map();
  void unmap(piece& p, std::unique_lock<std::mutex>& lock) noexcept;
  void move_to_its_list(piece& p) noexcept;
  std::mutex mutex_;
  chain<piece> with_memory_;     // pieces that have an unused span with memory
  chain<piece> without_memory_;  // other pieces that have an unused span
  std::size_t pieces_ = 0;
  std::atomic<std::size_t> unused_{0};
  std::atomic<std::size_t> held_{0};
  std::atomic<std::size_t> given_back_{0};
};

}  // namespace coppice::detail
