#pragma once
/// Pending timers in hierarchical wheels: arming, cancelling and firing cost the same with one or a million of them.
///
/// Each worker has a wheel, so that arming hardly ever waits for a lock; all other threads share one more. Any thread
/// may cancel. Time is counted in ticks of a millisecond. A timer is due at the first tick that is not before its time:
/// never early, and at most a tick late.
#include <array>
#include <deque>
#include <optional>
#include <vector>

#include <coppice/runtime/detail/kernel.hpp>

#include "spin_lock.hpp"

namespace coppice::detail {

class wheel {
 public:
  using tick = std::uint64_t;

  explicit wheel(tick now) : now_{now} {}

  struct armed {
    std::uint32_t index;
    std::uint32_t generation;
  };
  armed arm(tick due, time_point exact, pid to, envelope* e);
  /// Removes a pending timer and returns its envelope; null: the timer is not pending.
  [[nodiscard]] envelope* disarm(std::uint32_t index, std::uint32_t generation);
  [[nodiscard]] std::optional<time_point> due_of(std::uint32_t index, std::uint32_t generation);
  /// Fires the timers that are due at `now` or before. Plain pushes into a mailbox are done under the lock, so that
  /// after a cancel that finds no timer, the message is in the mailbox. Other signals are put into `later`, to be sent
  /// without the lock, because sending them may destroy messages or take locks.
  void advance(tick now, kernel& k, std::vector<std::pair<pid, envelope*>>& later);
  /// A tick before which no timer fires; nothing if no timer is pending.
  [[nodiscard]] std::optional<tick> next() const;
  /// Disarms all timers and adds their envelopes to `into`.
  void take_all(std::vector<envelope*>& into);
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  spin_lock lock;  // held by the caller of every function above

 private:
  static constexpr unsigned bits = 8;
  static constexpr unsigned width = 1U << bits;
  static constexpr unsigned levels = 5;
  static constexpr tick horizon = tick{1} << (bits * levels - 1);  // 17 years; a later timer is inserted again then
  static constexpr std::uint32_t none = 0;

  struct entry {  // identified by its index; index 0 is not used
    std::uint32_t before = none;
    std::uint32_t after = none;
    std::uint32_t generation = 0;
    std::uint16_t list = 0;
    bool pending = false;
    tick due = 0;
    std::uint64_t sequence = 0;
    time_point exact{};
    pid to;
    envelope* letter = nullptr;
  };
  void insert(std::uint32_t index);
  void remove(std::uint32_t index);
  void free(std::uint32_t index);
  void cascade(unsigned level);
  void fire(std::uint32_t first, kernel& k, std::vector<std::pair<pid, envelope*>>& later);
  [[nodiscard]] entry& entry_at(std::uint32_t index) noexcept { return chunks_[index / chunk][index % chunk]; }
  [[nodiscard]] static unsigned bucket_of(tick t, unsigned level) noexcept {
    return static_cast<unsigned>(t >> (bits * level)) & (width - 1);
  }

  tick now_;  // everything due up to here has fired
  std::size_t size_ = 0;
  std::vector<std::uint32_t> lists_;  // the first entry of each bucket of each level; made on first use
  std::array<std::array<std::uint64_t, width / 64>, levels> used_{};
  static constexpr std::uint32_t chunk = 1024;
  std::vector<std::unique_ptr<entry[]>> chunks_;  // blocks of `chunk` entries: an entry never moves
  std::uint32_t next_index_ = 1;                  // of the next new entry
  std::uint32_t free_ = none;                     // the first free entry; the others follow by `after`
  std::vector<std::uint32_t> due_;                // scratch of `fire`: the entries of one tick
  std::uint64_t armed_ = 0;
};

class timers {
 public:
  timers(kernel& k, std::size_t wheels, time_point origin);

  timer_ref arm(std::size_t which, time_point due, pid to, envelope* e);
  [[nodiscard]] envelope* disarm(timer_ref ref);
  [[nodiscard]] std::optional<time_point> due_of(timer_ref ref);
  void advance(time_point now);
  /// When to call `advance` next, as far as is known now; nothing if no timer is pending.
  [[nodiscard]] std::optional<time_point> next();
  void drop_all();
  [[nodiscard]] std::size_t size();
  [[nodiscard]] std::size_t wheels() const noexcept { return wheels_.size(); }

 private:
  /// What a `timer_ref` consists of.
  struct ref_parts {
    std::size_t wheel;
    std::uint32_t index;
    std::uint32_t generation;
  };
  [[nodiscard]] std::optional<ref_parts> find(timer_ref ref) const noexcept;
  [[nodiscard]] wheel::tick tick_at_or_after(time_point t) const noexcept;

  kernel& kernel_;
  time_point origin_;
  std::deque<wheel> wheels_;
};

}  // namespace coppice::detail
