#include <algorithm>
#include <atomic>
#include <mutex>

#include <coppice/runtime/detail/pool.hpp>

#include "internal/spans.hpp"

namespace coppice::detail {

constinit thread_local thread_memory memory{};

namespace {

constexpr std::size_t size_of(std::size_t size_class) { return (size_class + 1) * pool_grain; }

span_store& store() {
  static auto* one = new span_store;  // never destroyed: threads may end after main
  return *one;
}

/// The blocks of one class that no thread has.
class depot {
 public:
  void put_magazine(block* m) noexcept {
    const std::scoped_lock lock{mutex_};
    m->next_full = std::exchange(full_, m);
    count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void put_block(block* b) noexcept {
    const std::scoped_lock lock{mutex_};
    put_into_span(b);
  }
  /// Fills an empty cache.
  void fill(block_cache& into, std::size_t size);
  /// Takes magazines apart and puts their blocks into their spans. Returns how many.
  std::size_t take_apart(trim how, std::size_t magazines_at_most) noexcept;
  [[nodiscard]] std::size_t magazines() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  block* take_magazine() noexcept;
  void put_into_span(block* b) noexcept;
  void take_from_spans(block_cache& into) noexcept;

  std::mutex mutex_;
  block* full_ = nullptr;              // a stack of magazines
  std::atomic<std::size_t> count_{0};  // its height; written under the lock
  std::size_t unneeded_ = 0;           // its lowest height since the last `take_apart`
  chain<span> with_free_blocks_;
  span* fresh_span_ = nullptr;  // the span that new blocks are carved from
  char* fresh_ = nullptr;       // its rest
};

std::array<depot, pool_classes>& depots() {
  static auto* all = new std::array<depot, pool_classes>;  // never destroyed, as above
  return *all;
}

block* depot::take_magazine() noexcept {
  const std::size_t left = count_.load(std::memory_order_relaxed) - 1;
  count_.store(left, std::memory_order_relaxed);
  unneeded_ = std::min(unneeded_, left);
  return std::exchange(full_, full_->next_full);
}

void depot::put_into_span(block* b) noexcept {
  span& s = span_of(b);
  b->next = std::exchange(s.free, b);
  if (s.free_count++ == 0) with_free_blocks_.push(s);
  if (s.free_count != s.carved) return;
  with_free_blocks_.remove(s);
  if (fresh_span_ == &s) fresh_span_ = nullptr;
  store().put(s);
}

void depot::take_from_spans(block_cache& into) noexcept {
  while (with_free_blocks_.first != nullptr && into.count < magazine) {
    span& s = *with_free_blocks_.first;
    into.give(std::exchange(s.free, s.free->next));
    if (--s.free_count == 0) with_free_blocks_.remove(s);
  }
}

void depot::fill(block_cache& into, std::size_t size) {
  char* run = nullptr;
  int blocks = 0;
  {
    const std::scoped_lock lock{mutex_};
    if (full_ != nullptr) {
      into.list = take_magazine();
      into.count = magazine;
      return;
    }
    take_from_spans(into);
    if (into.list != nullptr) return;
    // Carve a whole magazine at once: carving single blocks would take the lock for each of them.
    const auto room = [&] { return static_cast<std::size_t>(fresh_span_->end() - fresh_) / size; };
    if (fresh_span_ == nullptr || room() == 0) {
      fresh_span_ = &store().take();
      fresh_ = fresh_span_->begin();
    }
    blocks = static_cast<int>(std::min<std::size_t>(room(), magazine));
    run = std::exchange(fresh_, fresh_ + static_cast<std::size_t>(blocks) * size);
    fresh_span_->carved += static_cast<std::uint32_t>(blocks);
  }
  // Without the lock, because the first use of a page takes long.
  for (int i = blocks - 1; i >= 0; --i) into.give(reinterpret_cast<block*>(run + static_cast<std::size_t>(i) * size));
}

std::size_t depot::take_apart(trim how, std::size_t magazines_at_most) noexcept {
  block* taken = nullptr;
  std::size_t count = 0;
  {
    const std::scoped_lock lock{mutex_};
    count = how == trim::fully ? magazines() : std::min((unneeded_ + 7) / 8, magazines_at_most);
    for (std::size_t i = 0; i < count; ++i) {
      block* m = take_magazine();
      m->next_full = std::exchange(taken, m);
    }
    unneeded_ = magazines();
  }
  while (taken != nullptr) {
    // The blocks are read before the lock is taken: they are in no cache of this processor.
    std::array<block*, magazine> blocks{};
    block* next = std::exchange(taken, taken->next_full);
    for (block*& b : blocks) b = std::exchange(next, next->next);
    const std::scoped_lock lock{mutex_};
    for (block* b : blocks) put_into_span(b);
  }
  return count;
}

struct flush_at_thread_end {
  bool armed = true;
  ~flush_at_thread_end() {
    for (std::size_t c = 0; c < pool_classes; ++c) {
      block_cache& mine = memory.caches[c];
      depot& d = depots()[c];
      if (mine.spare != nullptr) d.put_magazine(std::exchange(mine.spare, nullptr));
      while (mine.list != nullptr) d.put_block(mine.take());
    }
  }
};

void flush_when_this_thread_ends() noexcept {
  static thread_local flush_at_thread_end flush;
  (void)flush.armed;  // the first use registers its destructor
}

std::size_t bytes_in_magazines() noexcept {
  std::size_t bytes = 0;
  for (std::size_t c = 0; c < pool_classes; ++c) bytes += depots()[c].magazines() * magazine * size_of(c);
  return bytes;
}

}  // namespace

void* allocate_slow(std::size_t c) {
  flush_when_this_thread_ends();
  depots()[c].fill(memory.caches[c], size_of(c));
  return memory.caches[c].take();
}

void release_slow(std::size_t c, block* b) noexcept {
  flush_when_this_thread_ends();
  block_cache& mine = memory.caches[c];
  if (block* full = std::exchange(mine.spare, std::exchange(mine.list, nullptr))) depots()[c].put_magazine(full);
  mine.count = 0;
  mine.give(b);
}

void* allocate_on_heap(std::size_t size) { return ::operator new(size); }
void release_to_heap(void* p) noexcept { ::operator delete(p); }

pool_usage usage_of_pools() noexcept { return {store().held(), store().given_back()}; }

bool trim_pools(trim how) noexcept {
  static std::atomic<bool> begun{false};
  if (bytes_in_magazines() + store().unused() <= pool_watermark && !begun.load(std::memory_order_relaxed)) return false;
  // Each block costs a cache miss, and timers wait meanwhile.
  constexpr std::size_t blocks_at_a_time = 32768;
  std::size_t budget = blocks_at_a_time / magazine;
  for (std::size_t c = 0; c < pool_classes; ++c) budget -= std::min(budget, depots()[c].take_apart(how, budget));
  store().give_back(pool_watermark);
  const bool more = bytes_in_magazines() != 0;
  begun.store(more, std::memory_order_relaxed);
  return more;
}

}  // namespace coppice::detail
