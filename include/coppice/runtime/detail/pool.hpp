#pragma once
/// Memory for envelopes, coroutine frames and process bodies: free lists by size class and thread.
///
/// A thread takes blocks from its own list and puts freed blocks there, whichever thread allocated them. Full magazines
/// of 64 blocks move between threads through a depot, so its lock is taken once for 64 blocks. Where many threads
/// allocate and one thread frees, the blocks return in whole magazines. Magazines that nobody needs are taken apart by
/// `trim_pools`, and memory without a block in use goes back to the system. `COPPICE_PLAIN_MALLOC` turns the pools off,
/// for address sanitizers.
#include <array>
#include <cstddef>
#include <cstdint>
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
  /// Puts a block into the cache, whose working list must not be full.
  void give(block* b) noexcept {
    b->next = list;
    list = b;
    ++count;
  }
};

inline constexpr std::size_t pool_grain = 16;
inline constexpr std::size_t pool_classes = 32;  // up to 512 bytes; larger blocks come from malloc

// Trivial on purpose: a thread_local with a constructor or destructor costs a check at every use. When a thread ends, a
// guard moves its blocks to the depot. The first call of one of the two functions below registers that guard; a thread
// that calls neither loses at most 64 blocks of each class.
struct thread_memory {
  std::array<block_cache, pool_classes> caches;
};
extern constinit thread_local thread_memory memory [[gnu::tls_model("initial-exec")]];

[[nodiscard]] void* allocate_slow(std::size_t size_class);
/// Makes the full working list of the thread the spare magazine, and begins a new list with this block. The spare
/// magazine goes to the depot.
void release_slow(std::size_t size_class, block* b) noexcept;
// Not inline: otherwise g++ 12 sees one half of a pair of new and delete in the user's code, and warns of a mismatch.
[[nodiscard]] void* allocate_on_heap(std::size_t size);
void release_to_heap(void* p) noexcept;

#ifdef COPPICE_PLAIN_MALLOC
inline constexpr bool pooled = false;
#else
inline constexpr bool pooled = true;
#endif

/// Throws `std::bad_alloc`.
[[nodiscard, gnu::always_inline]] inline void* allocate(std::size_t size) {
  const std::size_t c = (size - 1) / pool_grain;
  if (!pooled || c >= pool_classes) [[unlikely]]
    return allocate_on_heap(size);
  if (void* p = memory.caches[c].take()) [[likely]]
    return p;
  return allocate_slow(c);
}
[[gnu::always_inline]] inline void release(void* p, std::size_t size) noexcept {
  const std::size_t c = (size - 1) / pool_grain;
  if (!pooled || c >= pool_classes) [[unlikely]]
    return release_to_heap(p);
  block_cache& mine = memory.caches[c];
  if (mine.count == magazine) [[unlikely]]
    return release_slow(c, static_cast<block*>(p));
  mine.give(static_cast<block*>(p));
}

/// For `std::allocate_shared`: the object and its counts in one block of a pool.
template <class T>
struct pool_allocator {
  using value_type = T;
  pool_allocator() = default;
  template <class Other>
  pool_allocator(const pool_allocator<Other>& /*unused*/) noexcept {}  // NOLINT(google-explicit-constructor): rebinds
  [[nodiscard]] T* allocate(std::size_t n) { return static_cast<T*>(detail::allocate(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) noexcept { release(p, n * sizeof(T)); }
  bool operator==(const pool_allocator&) const = default;
};

/// What the pools of this program hold, in bytes; nothing if they are turned off.
struct pool_usage {
  std::size_t held = 0;        ///< memory that they have from the system now
  std::size_t given_back = 0;  ///< memory that went back to the system, in total
};
[[nodiscard]] pool_usage usage_of_pools() noexcept;

/// A trim begins when the pools have more free memory than this, and this much stays in spans without blocks.
inline constexpr std::size_t pool_watermark = std::size_t{512} << 10U;

enum class trim : std::uint8_t {
  gently,  ///< an eighth of what nobody has needed since the last call, and at most 32,768 blocks
  fully,   ///< all that is free
};
/// Gives memory back to the system if the pools have more free memory than the watermark. True: more may follow with
/// the next call. Once begun, later calls continue below the watermark until no magazine is left, because one block in
/// a magazine keeps its whole span.
bool trim_pools(trim how) noexcept;

}  // namespace coppice::detail
