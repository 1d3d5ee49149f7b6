#pragma once
/// Waiting for the start of a process: until its `init` has succeeded, or the process has ended.
#include <coppice/runtime/detail/process_end.hpp>
#include <coppice/runtime/spawn.hpp>

namespace coppice::detail {

struct start_outcome {
  enum class kind : std::uint8_t { ready, ignored, failed, timed_out };
  kind what = kind::failed;
  exit_reason reason{};        ///< of its end, if it has ended
  std::optional<error> why{};  ///< the error that its `init` gave
  /// The error for the caller that requested the start.
  [[nodiscard]] error to_error(pid who) const;
};

/// The awaitable of `await_start`. `who` was spawned with `birth::ack == number`, and is linked to the waiting process
/// or monitored by it.
class [[nodiscard]] starting : public timed_waiter {
 public:
  starting(pid who, std::uint64_t number, std::chrono::nanoseconds timeout, monitor_ref watched_as,
           death_watcher* deaths) noexcept
      : timed_waiter{how, timeout}, which_{.who = who, .watched = watched_as}, number_{number}, deaths_{deaths} {}

  start_outcome await_resume() { return std::move(out_); }

 private:
  static bool take(waiter& w, coroutine& me, envelope& e);
  static void expire(waiter& w) { static_cast<starting&>(w).out_.what = start_outcome::kind::timed_out; }
  static void describe(const waiter& w, wait_info& into) {
    into.kind = wait_kind::start;
    into.whom = static_cast<const starting&>(w).which_.who;
  }
  static constexpr wait_type how{.take = &take, .expire = &expire, .describe = &describe};
  [[nodiscard]] bool take_news(envelope& e);

  awaited_end which_;
  std::uint64_t number_;
  death_watcher* deaths_;
  start_outcome out_{};
};

/// Waits for a process that was just spawned. If its start takes too long, kills it and waits for its end.
[[nodiscard]] task<start_outcome> await_start(self& me, pid who, std::uint64_t number, std::chrono::nanoseconds within,
                                              monitor_ref watched_as);

/// A new number for `birth::ack` of a process that `me` starts.
[[nodiscard]] inline std::uint64_t new_start_number(self& me) { return static_cast<coroutine&>(me).new_number(); }

}  // namespace coppice::detail
