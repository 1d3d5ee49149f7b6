#include <coppice/base/ensure.hpp>
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

bool starting::take(waiter& w, coroutine&, envelope& e) {
  auto& mine = static_cast<starting&>(w);
  if (e.type == &plain<start_news>) return mine.take_news(e);
  std::optional<process_end> end = take_end(e, mine.which_, mine.deaths_);
  if (!end) return false;
  mine.out_.reason = std::move(end->reason);
  return true;
}

/// True: the wait is over. After a start that was refused it goes on until the process has ended.
bool starting::take_news(envelope& e) {
  const start_news& news = static_cast<letter<start_news>&>(e).body;
  if (news.call != number_) return false;
  switch (news.how.what()) {
    case init_result::kind::ok:
      out_.what = start_outcome::kind::ready;
      std::destroy_at(&static_cast<letter<start_news>&>(e).body);
      return true;
    case init_result::kind::ignore: out_.what = start_outcome::kind::ignored; break;
    case init_result::kind::fail:
    case init_result::kind::stop:
      ensure(news.how.why() != nullptr, "a failed start without an error");
      out_.why = *news.how.why();
      break;
  }
  return false;
}

task<start_outcome> await_start(self& me, pid who, std::uint64_t number, std::chrono::nanoseconds within,
                                monitor_ref watched_as) {
  start_outcome out = co_await starting(who, number, within, watched_as, nullptr);
  if (out.what != start_outcome::kind::timed_out) co_return out;
  if (watched_as) me.unlink(who);  // so that a starter that does not trap exits survives; the monitor tells of the end
  me.kill(who);
  std::optional<process_end> end = co_await until_ended(who, watched_as, no_timeout);
  ensure(end.has_value(), "a wait without limit timed out");
  out.reason = std::move(end->reason);
  co_return out;
}

}  // namespace coppice::detail
