#pragma once
#include <coppice/runtime/runtime.hpp>

namespace coppice::detail {

/// Waits for the `down` of one monitor; nothing when the time is over first.
class [[nodiscard]] ending : public timed_waiter {
 public:
  ending(monitor_ref ref, std::chrono::nanoseconds timeout) noexcept : timed_waiter{how, timeout}, ref_{ref} {}
  std::optional<exit_reason> await_resume() { return std::move(why_); }

 private:
  static bool take_down(waiter& w, coroutine&, envelope& e) {
    auto& mine = static_cast<ending&>(w);
    if (e.type != &plain<down> || static_cast<letter<down>&>(e).body.ref != mine.ref_) return false;
    mine.why_ = take_body<down>(e).reason;
    return true;
  }
  static constexpr wait_type how{.take = &take_down, .expire = [](waiter&) {}};
  monitor_ref ref_;
  std::optional<exit_reason> why_;
};

}  // namespace coppice::detail
