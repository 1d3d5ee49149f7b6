#include <sys/mman.h>

#include <mutex>

#include <coppice/runtime/detail/pool.hpp>

namespace coppice::detail {

constinit thread_local thread_memory memory{};

namespace {

struct depot {
  std::mutex mutex;
  block* full = nullptr;   // a stack of magazines
  block* loose = nullptr;  // single blocks from the working lists of ended threads
  void put(block* m) noexcept { m->next_full = std::exchange(full, m); }
};

std::array<depot, pool_classes>& depots() {
  static auto* all = new std::array<depot, pool_classes>;  // never destroyed: threads may end after main
  return *all;
}

// Fresh memory comes in large aligned pieces and is never freed. A thread's first piece uses small pages, so that a
// thread that needs little memory takes little; its later pieces use huge pages if the kernel has them.
char* carve(std::size_t size) {
  constexpr std::size_t piece = std::size_t{2} << 20U;
  if (static_cast<std::size_t>(memory.fresh_end - memory.fresh) < size) {
    auto* raw = static_cast<char*>(std::aligned_alloc(piece, piece));
    if (raw == nullptr) throw std::bad_alloc{};
    ::madvise(raw, piece, memory.fresh == nullptr ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    memory.fresh = raw;
    memory.fresh_end = raw + piece;
  }
  return std::exchange(memory.fresh, memory.fresh + size);
}

struct flush_at_thread_end {
  bool armed = true;
  ~flush_at_thread_end() {
    for (std::size_t c = 0; c < pool_classes; ++c) {
      block_cache& mine = memory.caches[c];
      depot& d = depots()[c];
      const std::scoped_lock lock{d.mutex};
      if (mine.spare != nullptr) d.put(std::exchange(mine.spare, nullptr));
      while (mine.list != nullptr) {
        block* b = std::exchange(mine.list, mine.list->next);
        b->next = std::exchange(d.loose, b);
      }
      mine.count = 0;
    }
  }
};

}  // namespace

void* allocate_slow(std::size_t c) {
  static thread_local flush_at_thread_end flush;
  (void)flush.armed;  // the first use registers its destructor
  block_cache& mine = memory.caches[c];
  {
    depot& d = depots()[c];
    const std::scoped_lock lock{d.mutex};
    if (d.full != nullptr) {
      mine.list = std::exchange(d.full, d.full->next_full);
      mine.count = magazine;
      return mine.take();
    }
    while (d.loose != nullptr && mine.count < magazine) {
      block* b = std::exchange(d.loose, d.loose->next);
      b->next = std::exchange(mine.list, b);
      ++mine.count;
    }
    if (mine.list != nullptr) return mine.take();
  }
  // Carve a whole magazine at once: carving single blocks would take the depot's lock for each of them.
  const std::size_t size = (c + 1) * pool_grain;
  char* run = carve(size * magazine);
  for (int i = magazine - 1; i > 0; --i) {
    auto* b = reinterpret_cast<block*>(run + static_cast<std::size_t>(i) * size);
    b->next = std::exchange(mine.list, b);
  }
  mine.count = magazine - 1;
  return run;
}

void release_magazine(std::size_t c, block* full) noexcept {
  depot& d = depots()[c];
  const std::scoped_lock lock{d.mutex};
  d.put(full);
}

}  // namespace coppice::detail
