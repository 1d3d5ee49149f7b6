#pragma once
/// Memory for envelopes, coroutine frames and process bodies: free lists by size class and thread.
///
/// A thread takes blocks from its own list and puts freed blocks there, whichever thread allocated them. Full magazines
/// of 64 blocks move between threads through a depot, so its lock is taken once for 64 blocks. Where many threads
/// allocate and one thread frees, the blocks return in whole magazines. `COPPICE_PLAIN_MALLOC` turns the pools off, for
/// address sanitizers.
#include <array>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace coppice::detail {

struct block {
  block* next;
  block* next_full;  // in a depot: from the first block of one magazine to that of the next
};

inline constexpr int magazine = 64;

/// A thread's blocks of one class: a working list and one full magazine to spare, so that a thread that takes and gives
/// blocks in turn does not use the depot each time.
struct block_cache {
  block* list = nullptr;
  block* spare = nullptr;
  int count = 0;

  block* take() noexcept {
    if (list == nullptr) [[unlikely]] {
      if (spare == nullptr) return nullptr;
      list = std::exchange(spare, nullptr);
      count = magazine;
    }
    --count;
    return std::exchange(list, list->next);
  }
  /// Puts a block into the cache. Returns a full magazine that must go to the depot, or null.
  [[nodiscard]] block* give(block* b) noexcept {
    block* overflow = nullptr;
    if (count == magazine) [[unlikely]] {
      overflow = std::exchange(spare, std::exchange(list, nullptr));
      count = 0;
    }
    b->next = list;
    list = b;
    ++count;
    return overflow;
  }
};

inline constexpr std::size_t pool_grain = 16;
inline constexpr std::size_t pool_classes = 32;  // up to 512 bytes; larger blocks come from malloc

// Trivial on purpose: a thread_local with a constructor or destructor costs a check at every use. When a thread ends, a
// guard that `allocate_slow` has registered moves its blocks to the depot.
struct thread_memory {
  std::array<block_cache, pool_classes> caches;
  char* fresh = nullptr;
  char* fresh_end = nullptr;
};
extern constinit thread_local thread_memory memory [[gnu::tls_model("initial-exec")]];

[[nodiscard]] void* allocate_slow(std::size_t size_class);
void release_magazine(std::size_t size_class, block* full) noexcept;

#ifdef COPPICE_PLAIN_MALLOC
inline constexpr bool pooled = false;
#else
inline constexpr bool pooled = true;
#endif

/// Throws `std::bad_alloc`.
[[nodiscard]] inline void* allocate(std::size_t size) {
  const std::size_t c = (size - 1) / pool_grain;
  if (!pooled || c >= pool_classes) [[unlikely]]
    return ::operator new(size);
  if (void* p = memory.caches[c].take()) [[likely]]
    return p;
  return allocate_slow(c);
}
inline void release(void* p, std::size_t size) noexcept {
  const std::size_t c = (size - 1) / pool_grain;
  if (!pooled || c >= pool_classes) [[unlikely]]
    return ::operator delete(p);
  if (block* full = memory.caches[c].give(static_cast<block*>(p))) [[unlikely]]
    release_magazine(c, full);
}

}  // namespace coppice::detail
