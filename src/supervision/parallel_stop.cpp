#include "internal/parallel_stop.hpp"

namespace coppice::detail {

namespace {

/// Waits for the end of one of many.
template <class Known>
class collecting : waiter {
 public:
  collecting(Known known, std::chrono::nanoseconds timeout) noexcept : waiter{&how}, known_{known}, timeout_{timeout} {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> h) {
    coroutine& me = process_of(h.promise());
    if (me.take_saved(*this)) return me.out_of_turn(h);
    me.wait(h, *this, timeout_);
    return true;
  }
  struct end {
    pid who;
    exit_reason reason;
  };
  std::optional<end> await_resume() { return std::move(ended_); }

 private:
  static bool take(waiter& w, coroutine&, envelope& e) {
    auto& mine = static_cast<collecting&>(w);
    if (e.type == &plain<exited>) {
      exited& x = static_cast<letter<exited>&>(e).body;
      if (!x.linked || !mine.known_(x.from)) return false;
      exited taken = take_body<exited>(e);
      mine.ended_ = end{taken.from, std::move(taken.reason)};
      return true;
    }
    if (e.type != &plain<down> || !mine.known_(static_cast<letter<down>&>(e).body.who)) return false;
    down taken = take_body<down>(e);
    mine.ended_ = end{taken.who, std::move(taken.reason)};
    return true;
  }
  static constexpr wait_type how{.take = &take, .expire = [](waiter&) {}};
  Known known_;
  std::chrono::nanoseconds timeout_;
  std::optional<end> ended_;
};

}  // namespace

void parallel_stop::add(pid who, shutdown how) {
  // Always: `child_ended`, which a stop of one relies on, would be lost while this process lets others run.
  leaving l{.watched = me_.monitor(who)};
  if (how.is_brutal()) {
    l.at = stage::killed;
    me_.kill(who);
    if (abandon_after_) l.deadline = me_.host().time_after(*abandon_after_);
  } else {
    me_.exit(who, exit_reason::shutdown());
    if (!how.is_infinite()) l.deadline = me_.host().time_after(how.time());
  }
  next_deadline_ = std::min(next_deadline_, l.deadline);
  leaving_.insert(who, l);
}

/// Those whose time is over.
void parallel_stop::hurry() {
  const time_point now = me_.now();
  next_deadline_ = time_point::max();
  std::vector<pid> late;
  leaving_.for_each([&](pid who, const leaving& l) {
    if (l.deadline <= now)
      late.push_back(who);
    else
      next_deadline_ = std::min(next_deadline_, l.deadline);
  });
  for (const pid who : late) {
    leaving& l = *leaving_.find(who);
    if (l.at == stage::asked) {
      l.at = stage::killed;
      me_.kill(who);
    } else {
      l.abandoned = me_.host().abandon(who) || l.abandoned;
    }
    l.deadline = abandon_after_ ? me_.host().time_after(*abandon_after_) : time_point::max();
    next_deadline_ = std::min(next_deadline_, l.deadline);
  }
}

task<std::optional<parallel_stop::gone>> parallel_stop::next() {
  while (!leaving_.empty()) {
    const auto known = [this](pid who) { return leaving_.find(who) != nullptr; };
    const std::chrono::nanoseconds timeout = next_deadline_ == time_point::max()
                                                 ? no_timeout
                                                 : std::max(next_deadline_ - me_.now(), std::chrono::nanoseconds{0});
    auto ended = co_await collecting(known, timeout);
    if (!ended) {
      hurry();
      continue;
    }
    const leaving l = *leaving_.find(ended->who);
    leaving_.erase(ended->who);
    me_.demonitor(l.watched);
    co_return gone{ended->who, {.reason = std::move(ended->reason), .abandoned = l.abandoned}};
  }
  co_return std::nullopt;
}

}  // namespace coppice::detail
