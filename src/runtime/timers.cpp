#include "internal/timers.hpp"

#include <algorithm>
#include <bit>
#include <mutex>

#include <coppice/base/ensure.hpp>

#include "internal/kernel_parts.hpp"

namespace coppice::detail {

using std::chrono::milliseconds;

// ---- one wheel

wheel::armed wheel::arm(tick due, time_point exact, pid to, envelope* e) {
  if (lists_.empty()) lists_.resize(std::size_t{levels} * width, none);
  std::uint32_t index = free_;
  if (index != none) {
    free_ = entry_at(index).after;
  } else {
    if (next_index_ / chunk == chunks_.size()) chunks_.push_back(std::make_unique<entry[]>(chunk));
    index = next_index_++;
  }
  entry& t = entry_at(index);
  t.due = std::max(due, now_ + 1);
  t.exact = exact;
  t.to = to;
  t.letter = e;
  t.pending = true;
  t.sequence = ++armed_;
  insert(index);
  ++size_;
  return {index, t.generation};
}

void wheel::insert(std::uint32_t index) {
  entry& t = entry_at(index);
  const tick due = std::min(t.due, now_ + horizon);
  // The level is the highest digit in which the due time differs from now, so that a bucket holds one round only.
  const tick differs = due ^ now_;
  const unsigned level = std::min<unsigned>(
      differs == 0 ? 0 : (63U - static_cast<unsigned>(std::countl_zero(differs))) / bits, levels - 1);
  const unsigned at = bucket_of(due, level);
  t.list = static_cast<std::uint16_t>(level * width + at);
  t.before = none;
  t.after = std::exchange(lists_[t.list], index);
  if (t.after != none) entry_at(t.after).before = index;
  used_[level][at / 64] |= std::uint64_t{1} << (at % 64);
}

void wheel::remove(std::uint32_t index) {
  entry& t = entry_at(index);
  (t.before != none ? entry_at(t.before).after : lists_[t.list]) = t.after;
  if (t.after != none) entry_at(t.after).before = t.before;
  if (lists_[t.list] == none) used_[t.list / width][(t.list % width) / 64] &= ~(std::uint64_t{1} << (t.list % 64));
}

void wheel::free(std::uint32_t index) {
  entry& t = entry_at(index);
  ensure(t.pending && size_ > 0, "a timer is freed that is not pending");
  t.pending = false;
  t.letter = nullptr;
  // An entry that has used up its generations is not used again, so that no old ref ever meets a new timer.
  if (++t.generation < (1U << 24U) - 1) t.after = std::exchange(free_, index);
  --size_;
}

envelope* wheel::disarm(std::uint32_t index, std::uint32_t generation) {
  if (index >= next_index_) return nullptr;
  entry& t = entry_at(index);
  if (!t.pending || t.generation != generation) return nullptr;
  remove(index);
  envelope* e = t.letter;
  free(index);
  return e;
}

std::optional<time_point> wheel::due_of(std::uint32_t index, std::uint32_t generation) {
  if (index >= next_index_) return std::nullopt;
  const entry& t = entry_at(index);
  if (!t.pending || t.generation != generation) return std::nullopt;
  return t.exact;
}

void wheel::cascade(unsigned level) {
  const std::size_t list = std::size_t{level} * width + bucket_of(now_, level);
  std::uint32_t at = std::exchange(lists_[list], none);
  used_[level][(list % width) / 64] &= ~(std::uint64_t{1} << (list % 64));
  while (at != none) {
    const std::uint32_t after = entry_at(at).after;
    insert(at);
    at = after;
  }
}

void wheel::fire(std::uint32_t first, kernel& k, std::vector<std::pair<pid, envelope*>>& later) {
  // Timers of one tick fire in the order in which they were armed, which need not be the order of the list.
  due_.clear();
  for (std::uint32_t at = first; at != none; at = entry_at(at).after) due_.push_back(at);
  std::ranges::sort(due_, {}, [this](std::uint32_t at) { return entry_at(at).sequence; });
  for (const std::uint32_t at : due_) {
    entry& t = entry_at(at);
    if (t.due > now_) {
      insert(at);  // it was beyond the horizon
      continue;
    }
    // `send` may run user code, for example the destructor of a message to nobody: not under the lock of the wheel.
    slot* const p = k.table().covers(t.to) ? &k.table()[t.to.index()] : nullptr;
    if (p == nullptr || t.letter->what() == signal::fast || p->is_special(t.to.serial())) {
      later.emplace_back(t.to, t.letter);
    } else {
      if (p->mail.push(t.letter)) k.schedule(*p);
    }
    free(at);
  }
}

void wheel::advance(tick now, kernel& k, std::vector<std::pair<pid, envelope*>>& later) {
  while (now_ < now) {
    if (size_ == 0) {
      now_ = now;
      return;
    }
    // Skip at once to the next tick at which something may happen.
    now_ = std::min(now, std::max(now_ + 1, *next()));
    for (unsigned level = levels - 1; level > 0; --level)
      if ((now_ & ((tick{1} << (bits * level)) - 1)) == 0) cascade(level);
    const unsigned at = bucket_of(now_, 0);
    const std::uint32_t first = std::exchange(lists_[at], none);
    used_[0][at / 64] &= ~(std::uint64_t{1} << (at % 64));
    if (first != none) fire(first, k, later);
  }
}

std::optional<wheel::tick> wheel::next() const {
  if (size_ == 0) return std::nullopt;
  for (unsigned level = 0; level < levels; ++level) {
    // Buckets after the hand of this level are due in this round. The others are empty (see `insert`), except in the
    // last level, where they are due in the next round.
    const unsigned hand = bucket_of(now_, level);
    for (unsigned step = 1; step <= width; ++step) {
      const unsigned at = (hand + step) % width;
      const std::uint64_t word = used_[level][at / 64] >> (at % 64);
      if (word == 0) {
        step += 63 - at % 64;
        continue;
      }
      const unsigned skip = static_cast<unsigned>(std::countr_zero(word));
      const tick round = now_ >> (bits * level);
      return (round + step + skip) << (bits * level);
    }
  }
  return now_ + 1;  // not reached: every pending timer is in a bucket
}

void wheel::take_all(std::vector<envelope*>& into) {
  for (std::uint32_t i = 1; i < next_index_; ++i)
    if (entry_at(i).pending) into.push_back(disarm(i, entry_at(i).generation));
}

// ---- all of them

namespace {
constexpr unsigned generation_shift = 40;
constexpr unsigned index_shift = 10;
constexpr std::uint64_t index_mask = (std::uint64_t{1} << (generation_shift - index_shift)) - 1;
constexpr std::uint64_t wheel_mask = (std::uint64_t{1} << index_shift) - 1;
}  // namespace

timers::timers(kernel& k, std::size_t wheels, time_point origin) : kernel_{k}, origin_{origin} {
  for (std::size_t i = 0; i < wheels; ++i) wheels_.emplace_back(0);
}

wheel::tick timers::tick_at_or_after(time_point t) const noexcept {
  const auto since = t - origin_;
  if (since.count() <= 0) return 0;
  return static_cast<wheel::tick>(std::chrono::ceil<milliseconds>(since).count());
}

timer_ref timers::arm(std::size_t which, time_point due, pid to, envelope* e) {
  wheel& w = wheels_[which];
  const std::scoped_lock lock{w.lock};
  const auto t = w.arm(tick_at_or_after(due), due, to, e);
  return timer_ref{std::uint64_t{t.generation} << generation_shift | std::uint64_t{t.index} << index_shift |
                   (which + 1)};
}

std::optional<timers::ref_parts> timers::find(timer_ref ref) const noexcept {
  const std::uint64_t which = ref.value() & wheel_mask;
  if (which == 0 || which > wheels_.size()) return std::nullopt;
  return ref_parts{which - 1, static_cast<std::uint32_t>(ref.value() >> index_shift & index_mask),
                   static_cast<std::uint32_t>(ref.value() >> generation_shift)};
}

envelope* timers::disarm(timer_ref ref) {
  const auto at = find(ref);
  if (!at) return nullptr;
  wheel& w = wheels_[at->wheel];
  const std::scoped_lock lock{w.lock};
  return w.disarm(at->index, at->generation);
}

std::optional<time_point> timers::due_of(timer_ref ref) {
  const auto at = find(ref);
  if (!at) return std::nullopt;
  wheel& w = wheels_[at->wheel];
  const std::scoped_lock lock{w.lock};
  return w.due_of(at->index, at->generation);
}

void timers::advance(time_point now) {
  const auto tick =
      static_cast<wheel::tick>(std::max<std::int64_t>(0, std::chrono::floor<milliseconds>(now - origin_).count()));
  std::vector<std::pair<pid, envelope*>> later;
  for (wheel& w : wheels_) {
    const std::scoped_lock lock{w.lock};
    w.advance(tick, kernel_, later);
  }
  for (const auto& [to, e] : later) {
    const trace_scope armed_in{kernel_.parts().trace_ids.take(*e)};
    if (e->what() == signal::fast)
      kernel_.send_fast(to, e);
    else
      kernel_.send(to, e->what(), e);
  }
}

std::optional<time_point> timers::next() {
  std::optional<time_point> first;
  for (wheel& w : wheels_) {
    const std::scoped_lock lock{w.lock};
    const auto t = w.next();
    if (!t) continue;
    const time_point at = origin_ + milliseconds{*t};
    if (!first || at < *first) first = at;
  }
  return first;
}

void timers::drop_all() {
  std::vector<envelope*> left;
  for (wheel& w : wheels_) {
    const std::scoped_lock lock{w.lock};
    w.take_all(left);
  }
  for (envelope* e : left) discard(kernel_, e);
}

std::size_t timers::size() {
  std::size_t all = 0;
  for (wheel& w : wheels_) {
    const std::scoped_lock lock{w.lock};
    all += w.size();
  }
  return all;
}

}  // namespace coppice::detail
