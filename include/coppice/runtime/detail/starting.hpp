#pragma once
/// Waiting for the start of a process: until its `init` has succeeded or refused, or the process has ended.
#include <coppice/runtime/spawn.hpp>

namespace coppice::detail {

/// Is notified of exits that are put aside while their supervisor waits for something else.
class death_watcher {
 public:
  virtual ~death_watcher() = default;
  virtual void saw(const exited& x) = 0;
};

struct start_outcome {
  enum class kind : std::uint8_t { ready, ignored, failed, timed_out };
  kind what = kind::failed;
  exit_reason reason{};        ///< of its end, if it has ended
  std::optional<error> why{};  ///< the error that its `init` gave
  /// The error for the caller that requested the start.
  [[nodiscard]] error to_error(pid who) const;
};

/// `who` was spawned with `number` as its birth's `ack`, linked to this process or monitored by it.
class [[nodiscard]] starting : public timed_waiter {
 public:
  starting(pid who, std::uint64_t number, std::chrono::nanoseconds timeout, monitor_ref watched_as,
           death_watcher* deaths) noexcept
      : timed_waiter{how, timeout}, who_{who}, number_{number}, watched_as_{watched_as}, deaths_{deaths} {}

  start_outcome await_resume() { return std::move(out_); }

 private:
  static bool take(waiter& w, coroutine& me, envelope& e);
  static void expire(waiter& w) { static_cast<starting&>(w).out_.what = start_outcome::kind::timed_out; }
  static constexpr wait_type how{.take = &take, .expire = &expire};
  bool ended(const exit_reason& reason);

  pid who_;
  std::uint64_t number_;
  monitor_ref watched_as_;
  death_watcher* deaths_;
  start_outcome out_{};
};

/// Waits for a process that was just spawned. If its start takes too long, kills it and waits for its end.
[[nodiscard]] task<start_outcome> await_start(self& me, pid who, std::uint64_t number, std::chrono::nanoseconds within,
                                              monitor_ref watched_as, death_watcher* deaths);

/// A number for a process that this one starts.
[[nodiscard]] inline std::uint64_t new_start_number(self& me) { return static_cast<coroutine&>(me).new_number(); }

}  // namespace coppice::detail
