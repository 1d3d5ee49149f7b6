#include <coppice/base/ensure.hpp>
#include <coppice/runtime/detail/process_end.hpp>
#include <coppice/runtime/detail/starting.hpp>

namespace coppice::detail {

error start_outcome::to_error(pid who) const {
  const std::string name = to_string(who);
  switch (what) {
    case kind::ready: break;
    case kind::ignored: return error{errc::ignored, name + " had nothing to do"};
    case kind::timed_out: return error{errc::timeout, name + " took too long to start, and was killed"};
    case kind::failed: break;
  }
  if (why) return *why;
  return error{errc::start_failed, reason.to_string()};
}

bool starting::ended(const exit_reason& reason) {
  out_.reason = reason;
  return true;
}

bool starting::take(waiter& w, coroutine&, envelope& e) {
  auto& mine = static_cast<starting&>(w);
  if (e.what() == signal::notice) {
    if (e.type == &plain<child_ended>) {
      if (static_cast<letter<child_ended>&>(e).body.who != mine.who_) return false;
      return mine.ended(take_body<child_ended>(e).reason);
    }
    if (e.type != &plain<start_news>) return false;
    const start_news& news = static_cast<letter<start_news>&>(e).body;
    if (news.call != mine.number_) return false;
    switch (news.how.what()) {
      case init_result::kind::ok:
        mine.out_.what = start_outcome::kind::ready;
        std::destroy_at(&static_cast<letter<start_news>&>(e).body);
        return true;
      case init_result::kind::ignore: mine.out_.what = start_outcome::kind::ignored; break;
      case init_result::kind::fail:
      case init_result::kind::stop:
        ensure(news.how.why() != nullptr, "a failed start without an error");
        mine.out_.why = *news.how.why();
        break;
    }
    return false;  // the wait goes on until the process has ended
  }
  if (e.type == &plain<exited>) {
    const exited& x = static_cast<letter<exited>&>(e).body;
    if (x.linked && x.from == mine.who_) return mine.ended(take_body<exited>(e).reason);
    if (mine.deaths_ != nullptr) mine.deaths_->saw(x);
  } else if (e.type == &plain<down> && mine.watched_as_) {
    if (static_cast<letter<down>&>(e).body.ref == mine.watched_as_) return mine.ended(take_body<down>(e).reason);
  }
  return false;
}

task<start_outcome> await_start(self& me, pid who, std::uint64_t number, std::chrono::nanoseconds within,
                                monitor_ref watched_as, death_watcher* deaths) {
  start_outcome out = co_await starting(who, number, within, watched_as, deaths);
  if (out.what != start_outcome::kind::timed_out) co_return out;
  if (watched_as) me.unlink(who);  // so that a starter that does not trap exits survives; the monitor tells of the end
  me.kill(who);
  std::optional<process_end> end = co_await until_ended(who, watched_as, no_timeout, deaths);
  ensure(end.has_value(), "a wait without limit timed out");
  out.reason = std::move(end->reason);
  co_return out;
}

}  // namespace coppice::detail
