#include "internal/spans.hpp"

#include <sys/mman.h>

#include <bit>

// Functions of the leak sanitizer; null without it. Blocks may hold the only pointers to heap memory, so it has to scan
// them.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
[[gnu::weak]] void __lsan_register_root_region(const void* begin, std::size_t size);
[[gnu::weak]] void __lsan_unregister_root_region(const void* begin, std::size_t size);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace coppice::detail {

namespace {
constexpr std::size_t piece_size = std::size_t{2} << 20U;
constexpr std::size_t spans_in_piece = piece_size / span_size;
constexpr std::uint32_t all_spans = 0xFFFF'FFFF;
static_assert(spans_in_piece == 32, "a piece has one bit for each span");
constexpr std::size_t header_size = 4096;  // a page, which is kept when the memory of the first span is given back
}  // namespace

// A piece is at the start of its own memory, which is aligned to `piece_size`.
struct span_store::piece {
  piece* next = nullptr;
  piece* prev = nullptr;
  chain<piece>* list = nullptr;      // the list that it is in
  std::uint32_t unused = all_spans;  // one bit for each span
  std::uint32_t with_memory = 0;     // those of them that still have memory
  std::array<span, spans_in_piece> spans{};

  std::size_t index_of(const span& s) const noexcept { return static_cast<std::size_t>(&s - spans.data()); }
  char* at(std::size_t index) noexcept { return reinterpret_cast<char*>(this) + index * span_size; }
  /// Gives the memory of these spans back to the system. The piece has small pages from now on, because the system
  /// would make a huge page of the rest again, with memory for all of it. False: the system did not take all of it, for
  /// example because memory is locked.
  [[nodiscard]] bool discard(std::uint32_t which) noexcept;
};

namespace {

span_store::piece& piece_of(const void* inside) noexcept {
  static_assert(sizeof(span_store::piece) <= header_size);
  return *reinterpret_cast<span_store::piece*>(reinterpret_cast<std::uintptr_t>(inside) & ~(piece_size - 1));
}

char* aligned_memory() {
  void* raw = ::mmap(nullptr, 2 * piece_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) throw std::bad_alloc{};
  auto* const first = static_cast<char*>(raw);
  const std::size_t before = (piece_size - reinterpret_cast<std::uintptr_t>(first) % piece_size) % piece_size;
  if (before != 0) ::munmap(first, before);
  ::munmap(first + before + piece_size, piece_size - before);
  return first + before;
}

}  // namespace

char* span::begin() const noexcept {
  span_store::piece& p = piece_of(this);
  const std::size_t i = p.index_of(*this);
  return p.at(i) + (i == 0 ? header_size : 0);
}
char* span::end() const noexcept {
  span_store::piece& p = piece_of(this);
  return p.at(p.index_of(*this) + 1);
}

span& span_of(const block* b) noexcept {
  span_store::piece& p = piece_of(b);
  return p.spans[(reinterpret_cast<std::uintptr_t>(b) % piece_size) / span_size];
}

bool span_store::piece::discard(std::uint32_t which) noexcept {
  ::madvise(this, piece_size, MADV_NOHUGEPAGE);
  bool all = true;
  while (which != 0) {
    const auto first = static_cast<std::size_t>(std::countr_zero(which));
    const auto count = static_cast<std::size_t>(std::countr_one(which >> first));
    char* const begin = spans[first].begin();
    all = ::madvise(begin, static_cast<std::size_t>(at(first + count) - begin), MADV_DONTNEED) == 0 && all;
    which &= ~((all_spans >> (spans_in_piece - count)) << first);
  }
  return all;
}

/// Puts a piece into the list where it belongs.
void span_store::move_to_its_list(piece& p) noexcept {
  chain<piece>* const where = p.with_memory != 0 ? &with_memory_ : p.unused != 0 ? &without_memory_ : nullptr;
  if (p.list == where) return;
  if (p.list != nullptr) p.list->remove(p);
  if (where != nullptr) where->push(p);
  p.list = where;
}

// The first piece has small pages, so that a program that needs little memory takes little; other pieces have huge
// pages if the system has them.
span_store::piece& span_store::map() {
  char* const at = aligned_memory();
  ::madvise(at, piece_size, pieces_ == 0 ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  if (__lsan_register_root_region != nullptr) __lsan_register_root_region(at, piece_size);
  auto& p = *::new (at) piece;
  ++pieces_;
  move_to_its_list(p);
  return p;
}

/// Releases the lock during the system call.
void span_store::unmap(piece& p, std::unique_lock<std::mutex>& lock) noexcept {
  if (p.list != nullptr) p.list->remove(p);
  --pieces_;
  lock.unlock();
  if (__lsan_unregister_root_region != nullptr) __lsan_unregister_root_region(&p, piece_size);
  ::munmap(&p, piece_size);
  lock.lock();
}

span& span_store::take() {
  const std::scoped_lock lock{mutex_};
  piece& p = with_memory_.first != nullptr      ? *with_memory_.first
             : without_memory_.first != nullptr ? *without_memory_.first
                                                : map();
  const auto index = static_cast<std::size_t>(std::countr_zero(p.with_memory != 0 ? p.with_memory : p.unused));
  const std::uint32_t bit = 1U << index;
  (p.with_memory & bit ? unused_.fetch_sub(span_size) : held_.fetch_add(span_size));
  p.unused &= ~bit;
  p.with_memory &= ~bit;
  move_to_its_list(p);
  return p.spans[index] = span{};
}

void span_store::put(span& empty) noexcept {
  const std::scoped_lock lock{mutex_};
  piece& p = piece_of(&empty);
  const std::uint32_t bit = 1U << p.index_of(empty);
  p.unused |= bit;
  p.with_memory |= bit;
  unused_.fetch_add(span_size);
  move_to_its_list(p);
}

void span_store::give_back(std::size_t keep) noexcept {
  std::unique_lock lock{mutex_};
  while (unused_ > keep && with_memory_.first != nullptr) {
    piece& p = *with_memory_.first;
    std::uint32_t given = p.with_memory;
    const std::size_t excess = (unused_ - keep + span_size - 1) / span_size;
    while (static_cast<std::size_t>(std::popcount(given)) > excess) given &= given - 1;
    p.with_memory &= ~given;
    const std::size_t bytes = static_cast<std::size_t>(std::popcount(given)) * span_size;
    unused_.fetch_sub(bytes);
    held_.fetch_sub(bytes);
    given_back_.fetch_add(bytes);
    if (p.unused != all_spans || p.with_memory != 0) {
      p.unused &= ~given;  // nobody must take them while the lock is released
      move_to_its_list(p);
      lock.unlock();
      const bool gone = p.discard(given);
      lock.lock();
      p.unused |= given;
      if (!gone) {  // they count as having memory, and nothing more is tried now
        p.with_memory |= given;
        unused_.fetch_add(bytes);
        held_.fetch_add(bytes);
        given_back_.fetch_sub(bytes);
      }
      move_to_its_list(p);
      if (!gone) return;
    }
    if (p.unused == all_spans && p.with_memory == 0) unmap(p, lock);
  }
}

}  // namespace coppice::detail
