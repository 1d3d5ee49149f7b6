#include <sys/mman.h>

#include <new>

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/detail/process_table.hpp>

namespace coppice::detail {

namespace {

// Address space for all slots, memory on first touch. The zeros that the operating system hands out are valid slots
// without a process.
slot* map_slots(std::size_t count) {
  void* memory =
      ::mmap(nullptr, sizeof(slot) * count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc{};
  auto* slots = static_cast<slot*>(memory);
  // The first 131072 slots stay on small pages: the first touch of a huge page takes 2 MiB.
  constexpr std::size_t first_part = std::size_t{8} << 20U;
  if (const std::size_t all = sizeof(slot) * count; all > first_part)
    ::madvise(slots + first_part / sizeof(slot), all - first_part, MADV_HUGEPAGE);
  return slots;
}

}  // namespace

process_table::process_table(node_id node, std::uint32_t processes, std::uint8_t observed)
    : node_{node},
      size_{processes + 1},
      fast_path_size_{(observed & detail::has_trace_ids) != 0 ? 0 : size_},
      observed_{observed},
      slots_{map_slots(size_)} {}

process_table::~process_table() { ::munmap(slots_, sizeof(slot) * size_); }

bool process_table::alive(pid who) const noexcept {
  return who && covers(who) && slots_[who.index()].serial() == who.serial() &&
         who.index() < used_.load(std::memory_order_relaxed);
}

bool process_table::gone(pid who) const noexcept {
  if (!covers(who) || alive(who)) return false;
  const slot& p = slots_[who.index()];
  return p.is_past(who.serial()) || p.mail.tail.load(std::memory_order_acquire) == nullptr;
}

pid process_table::parent_of(const slot& p) const noexcept {
  const std::uint32_t index = p.parent_index.load(std::memory_order_relaxed);
  return index == 0 ? pid{} : pid::from_parts(node_, index, p.parent_serial.load(std::memory_order_relaxed));
}

std::uint32_t process_table::used() const noexcept { return std::min(used_.load(std::memory_order_relaxed), size_); }

/// Slots are touched when they are used for the first time, not before.
void process_table::prepare(std::uint32_t first, std::uint32_t count) noexcept {
  if (observed_ == 0) return;
  for (std::uint32_t i = first; i < first + count; ++i) slots_[i].urgent.fetch_or(observed_, std::memory_order_relaxed);
}

std::uint32_t process_table::take() {
  {
    const std::scoped_lock lock{free_mutex_};
    if (!free_.empty()) {
      const std::uint32_t index = free_.back();
      free_.pop_back();
      return index;
    }
  }
  const std::uint32_t index = used_.fetch_add(1, std::memory_order_relaxed);
  if (index >= size_) {
    used_.store(size_, std::memory_order_relaxed);
    return 0;
  }
  prepare(index, 1);
  return index;
}

std::size_t process_table::take_some(std::uint32_t* into, std::size_t most) {
  std::size_t n = 0;
  {
    const std::scoped_lock lock{free_mutex_};
    while (n < most && !free_.empty()) {
      into[n++] = free_.back();
      free_.pop_back();
    }
  }
  if (n != 0) return n;
  const auto want = static_cast<std::uint32_t>(most);
  std::uint32_t first = used_.load(std::memory_order_relaxed);
  do {
    if (first + want >= size_) return 0;  // `take` hands out the last few
  } while (!used_.compare_exchange_weak(first, first + want, std::memory_order_relaxed));
  prepare(first, want);
  for (std::uint32_t i = want; i > 0; --i) into[n++] = first + i - 1;
  return n;
}

void process_table::give_back(const std::uint32_t* from, std::size_t n) noexcept {
  const std::scoped_lock lock{free_mutex_};
  free_.insert(free_.end(), from, from + n);
}

}  // namespace coppice::detail
