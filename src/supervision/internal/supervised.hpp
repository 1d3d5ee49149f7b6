#pragma once
/// One child of a supervisor: its spec and what the supervisor knows about it.
#include <coppice/spec/child_info.hpp>

#include "exit_ring.hpp"

namespace coppice::detail {

/// Kept small: a supervisor may have a hundred thousand of these.
struct supervised {
  /// An upgrade of the supervisor may replace it. `shutdown` is always set. `start` is empty for a temporary child that
  /// was started: it is never started again, so its arguments are not kept.
  child_spec spec;
  pid who;                          // the process; while the child is down, the last one
  time_point since{};               // when the process was started
  timer_ref wait{};                 // set while a restart waits for its backoff
  supervised* waits_for = nullptr;  // the sibling that waits for its backoff, and with which the child is started again
  std::uint64_t restarts = 0;
  std::uint32_t failures = 0;  // in a row, for the backoff
  std::uint32_t place = 0;     // in the list of children
  // [[no_unique_address]] puts `state` into the padding of the ring; otherwise it would take another eight bytes.
  [[no_unique_address]] exit_ring history;
  child_state state = child_state::undefined;

  explicit supervised(child_spec s) { become(std::move(s)); }
  void become(child_spec s);
  [[nodiscard]] const std::string& id() const noexcept { return spec.id; }
  [[nodiscard]] bool temporary() const noexcept { return spec.restart == restart::temporary; }
  [[nodiscard]] bool running() const noexcept { return state == child_state::running; }
  [[nodiscard]] child_info info(self& me) const;
  [[nodiscard]] bool ended_before() const noexcept { return !history.empty(); }
  /// The child must have ended before.
  [[nodiscard]] const exit_reason& last_reason() const { return history.newest().reason; }
  [[nodiscard]] std::vector<exit_record> exits(self& me) const;

  static void* operator new(std::size_t n) { return allocate(n); }
  static void operator delete(void* p, std::size_t n) noexcept { release(p, n); }
};

}  // namespace coppice::detail
