// Streams of jobs.
#include <ranges>
#include <stdexcept>
#include <string>

#include <coppice/behaviour/async_stream.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace test;

struct pace {
  int index = 0;
  std::chrono::nanoseconds takes{0};
};
/// How many run now, and how many ran at the same time at most.
struct gauge {
  int now = 0;
  int most = 0;
  int started = 0;
  int ended = 0;
};
/// Jobs may end after the process that counts them.
using shared_gauge = std::shared_ptr<gauge>;
struct measured {
  pace p;
  shared_gauge at;
};
class counts {
 public:
  explicit counts(shared_gauge g) : gauge_{std::move(g)} {
    gauge_->most = std::max(gauge_->most, ++gauge_->now);
    ++gauge_->started;
  }
  ~counts() {
    --gauge_->now;
    ++gauge_->ended;
  }
  counts(const counts&) = delete;
  counts& operator=(const counts&) = delete;

 private:
  shared_gauge gauge_;
};
task<int> works(self& me, measured m) {
  const counts here{m.at};
  co_await me.sleep(m.p.takes);
  if (m.p.index < 0) throw std::runtime_error{"a negative index"};
  co_return m.p.index;
}
std::vector<measured> slowest_first(const shared_gauge& g, int n) {
  std::vector<measured> all;
  for (int i = 0; i < n; ++i)
    all.push_back({.p = {.index = i, .takes = std::chrono::milliseconds{100 * (n - i)}}, .at = g});
  return all;
}
std::vector<measured> with_failure_at(const shared_gauge& g, int n, int failing) {
  auto all = slowest_first(g, n);
  all[static_cast<std::size_t>(failing)].p.index = -1;
  return all;
}

template <class Stream>
task<std::vector<int>> drain(Stream* s) {
  std::vector<int> got;
  for (;;) {
    const auto r = co_await s->next();
    if (!r) co_return got;
    got.push_back(*r ? **r : -1);
  }
}

// ---- order and concurrency

task<> streams(self& me, std::size_t at_a_time, bool ordered) {
  const auto g = std::make_shared<gauge>();
  const auto input = slowest_first(g, 10);
  auto s = async_stream(me, input, works, {.max_concurrency = at_a_time, .ordered = ordered});
  std::vector<int> got = co_await drain(&s);
  EXPECT_EQ(g->most, static_cast<int>(std::min<std::size_t>(at_a_time, 10)));
  EXPECT_EQ(g->now, 0);
  if (!ordered && at_a_time >= 10) {
    EXPECT_EQ(got.front(), 9) << "the quickest";
  }
  if (!ordered) std::ranges::sort(got);
  EXPECT_EQ(got, (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const auto after_the_end = co_await s.next();
  EXPECT_FALSE(after_the_end);
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}
TEST(async_stream, gives_results_in_input_order_with_the_slowest_first) {
  for (const std::size_t n : {1U, 2U, 4U, 100U}) EXPECT_EQ(in_the_world(streams, n, true), exit_reason::normal());
}
TEST(async_stream, gives_results_as_they_come_when_order_does_not_matter) {
  for (const std::size_t n : {1U, 2U, 4U, 100U}) EXPECT_EQ(in_the_world(streams, n, false), exit_reason::normal());
}

task<> asks_which(self& me, bool ordered) {
  const auto g = std::make_shared<gauge>();
  const auto input = with_failure_at(g, 5, 3);  // the last one is done first
  auto s = async_stream_nolink(me, input, works, {.max_concurrency = 5, .ordered = ordered});
  std::vector<std::uint64_t> places;
  for (;;) {
    const auto r = co_await s.next();
    if (!r) break;
    places.push_back(s.index());
    EXPECT_EQ(r->has_value(), s.index() != 3);
    EXPECT_EQ(r->value_or(3), static_cast<int>(s.index()));
  }
  EXPECT_EQ(places,
            ordered ? (std::vector<std::uint64_t>{0, 1, 2, 3, 4}) : (std::vector<std::uint64_t>{4, 3, 2, 1, 0}));
}
TEST(async_stream, tells_which_element_a_result_or_a_failure_belongs_to) {
  for (const bool ordered : {true, false}) EXPECT_EQ(in_the_world(asks_which, ordered), exit_reason::normal());
}

int squared(int n) { return n * n; }
task<> streams_an_endless_range(self& me) {
  int taken = 0;
  const auto counted = [&taken](int n) {
    ++taken;
    return n;
  };
  auto squares = async_stream(me, std::views::iota(0) | std::views::transform(counted), squared,
                              {.max_concurrency = 3, .buffer = 10});
  EXPECT_EQ(taken, 0);
  for (int i = 0; i < 1000; ++i) {
    const std::optional<result<int>> r = co_await squares.next();
    EXPECT_EQ(r, result<int>{i * i});
    EXPECT_LE(taken, i + 1 + 3 + 10);
  }
}
TEST(async_stream, takes_from_the_range_only_what_it_needs) {
  EXPECT_EQ(in_the_world(streams_an_endless_range), exit_reason::normal());
  EXPECT_EQ(on_threads(streams_an_endless_range), exit_reason::normal());
}

task<> streams_nothing(self& me) {
  auto none = async_stream(me, std::vector<int>{}, squared);
  const std::optional<result<int>> r = co_await none.next();
  EXPECT_FALSE(r);
}
TEST(async_stream, over_nothing_is_over) { EXPECT_EQ(in_the_world(streams_nothing), exit_reason::normal()); }

task<> is_slow_itself(self& me) {
  const auto g = std::make_shared<gauge>();
  const auto input = slowest_first(g, 20);
  auto s = async_stream(me, input, works, {.max_concurrency = 4, .timeout = forever});
  for (int i = 0; i < 20; ++i) {
    const auto r = co_await s.next();
    EXPECT_EQ(r, result<int>{i});
    co_await me.sleep(10s);  // the jobs are done meanwhile, and their signals are gone
  }
  EXPECT_EQ(g->most, 4);
}
TEST(async_stream, waits_for_a_consumer_that_is_slow) {
  EXPECT_EQ(in_the_world(is_slow_itself), exit_reason::normal());
}

task<> keeps_few(self& me) {
  const auto g = std::make_shared<gauge>();
  std::vector<measured> input = slowest_first(g, 100);
  input[0].p.takes = 4s;  // nobody behind it can be given
  for (std::size_t i = 1; i < 100; ++i) input[i].p.takes = 1ms;
  auto s = async_stream(me, input, works, {.max_concurrency = 2, .buffer = 10});
  const auto first = co_await s.next();
  EXPECT_EQ(first, result<int>{0});
  EXPECT_EQ(g->started, 11) << "the slow one, and as many as may wait behind it";
  const std::vector<int> rest = co_await drain(&s);
  EXPECT_EQ(rest.size(), 99U);
}
TEST(async_stream, starts_no_more_when_too_many_results_wait) {
  EXPECT_EQ(in_the_world(keeps_few), exit_reason::normal());
}

// ---- failures

task<> streams_a_failure(self& me, pid boss) {
  const auto g = std::make_shared<gauge>();
  const auto input = with_failure_at(g, 5, 2);
  me.send(boss, me.id());
  auto s = async_stream(me, input, works, {.max_concurrency = 2});
  const std::vector<int> got = co_await drain(&s);
  ADD_FAILURE() << "the consumer should have ended";
}
task<> sees_the_consumer_fail(self& me) {
  const pid consumer = me.spawn_monitor(streams_a_failure, me.id()).who;
  const down d = co_await me.receive<down>();
  EXPECT_EQ(d.who, consumer);
  EXPECT_EQ(d.reason.text(), "a negative index");
}
TEST(async_stream, a_job_that_fails_takes_a_consumer_with_it_that_does_not_trap_exits) {
  EXPECT_EQ(in_the_world(sees_the_consumer_fail), exit_reason::normal());
}

task<> traps_or_is_not_linked(self& me, bool linked) {
  if (linked) me.trap_exits();
  const auto g = std::make_shared<gauge>();
  const auto input = with_failure_at(g, 5, 2);
  std::vector<int> got;
  if (linked) {
    auto s = async_stream(me, input, works, {.max_concurrency = 2});
    got = co_await drain(&s);
  } else {
    auto s = async_stream_nolink(me, input, works, {.max_concurrency = 2});
    got = co_await drain(&s);
  }
  EXPECT_EQ(got, (std::vector{0, 1, -1, 3, 4}));
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}
TEST(async_stream, gives_a_failure_as_a_result_to_who_traps_or_is_not_linked) {
  EXPECT_EQ(in_the_world(traps_or_is_not_linked, true), exit_reason::normal());
  EXPECT_EQ(in_the_world(traps_or_is_not_linked, false), exit_reason::normal());
}

int fails_at_once(int n) {
  if (n % 2 == 0) throw std::runtime_error{"even"};
  return n;
}
task<> names_the_reason(self& me) {
  auto s = async_stream_nolink(me, std::vector{1, 2}, fails_at_once);
  const auto first = co_await s.next();
  const auto second = co_await s.next();
  EXPECT_EQ(first, result<int>{1});
  EXPECT_EQ((*second).error().code(), errc::exited);
  EXPECT_NE((*second).error().text().find("even"), std::string_view::npos);
}
TEST(async_stream, names_the_reason_of_a_failure) { EXPECT_EQ(in_the_world(names_the_reason), exit_reason::normal()); }

// ---- what else goes on in the consumer

struct noise {};
task<> ends_at_once(self&) { co_return; }
task<> streams_with_other_mail(self& me) {
  me.trap_exits();
  const auto other = me.spawn_monitor(ends_at_once);
  me.send(me.id(), down{.ref = monitor_ref{77}, .who = other.who, .reason = exit_reason::error("forged")});
  me.send(me.id(), exited{.from = other.who, .reason = exit_reason::error("forged"), .linked = true});
  me.send(me.id(), noise{});
  const auto g = std::make_shared<gauge>();
  const auto input = slowest_first(g, 10);
  auto s = async_stream(me, input, works, {.max_concurrency = 3});
  const std::vector<int> got = co_await drain(&s);
  EXPECT_EQ(got, (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 4) << "the stream neither takes nor believes what is not from its jobs";
}
TEST(async_stream, leaves_other_mail_alone) { EXPECT_EQ(in_the_world(streams_with_other_mail), exit_reason::normal()); }

task<> streams_two(self& me) {
  auto squares = async_stream(me, std::views::iota(0, 10), squared, {.max_concurrency = 2});
  auto more = async_stream(me, std::views::iota(10), squared, {.max_concurrency = 3});
  for (int i = 0; i < 10; ++i) {
    const std::optional<result<int>> a = co_await squares.next();
    const std::optional<result<int>> b = co_await more.next();
    EXPECT_EQ(a, result<int>{i * i});
    EXPECT_EQ(b, result<int>{(i + 10) * (i + 10)});
  }
  const std::optional<result<int>> over = co_await squares.next();
  EXPECT_FALSE(over);
}
TEST(async_stream, two_may_be_taken_from_in_turns) {
  EXPECT_EQ(in_the_world(streams_two), exit_reason::normal());
  EXPECT_EQ(on_threads(streams_two), exit_reason::normal());
}

using numbers = job_stream<std::ranges::iota_view<int, int>, int (*)(int)>;
task<> takes_from_anothers(self&, numbers* s) {
  const std::optional<result<int>> r = co_await s->next();
  (void)r;
}
task<> gives_it_away(self& me) {
  auto s = async_stream(me, std::views::iota(0, 10), &squared);
  const auto thief = me.spawn_monitor(takes_from_anothers, &s);
  const down d = co_await me.receive<down>();
  EXPECT_EQ(d.who, thief.who);
  EXPECT_EQ(d.reason.exception_type(), "std::logic_error");
  const std::optional<result<int>> mine = co_await s.next();
  EXPECT_EQ(mine, result<int>{0});
}
TEST(async_stream, belongs_to_the_process_that_made_it) {
  EXPECT_EQ(in_the_world(gives_it_away), exit_reason::normal());
}

// ---- time

task<> is_too_slow(self& me, shared_gauge g, pid boss) {
  std::vector<measured> input{{.p = {.index = 1, .takes = 1h}, .at = g}};
  me.send(boss, me.id());
  auto s = async_stream(me, input, works, {.max_concurrency = 2, .timeout = 2s});
  const std::vector<int> got = co_await drain(&s);
  ADD_FAILURE() << "the consumer should have ended";
}
task<> sees_the_consumer_end_in_time(self& me) {
  const auto g = std::make_shared<gauge>();
  const auto begin = me.now();
  me.spawn_monitor(is_too_slow, g, me.id());
  const down d = co_await me.receive<down>();
  EXPECT_EQ(d.reason.what(), exit_reason::kind::error);
  EXPECT_NE(d.reason.text().find("for element 0, "), std::string_view::npos) << d.reason;
  EXPECT_GE(me.now() - begin, 2s);
  EXPECT_LT(me.now() - begin, 3s);
  co_await me.sleep(1s);
  EXPECT_EQ(g->now, 0) << "no job is left";
}
TEST(async_stream, by_default_a_job_that_is_late_ends_the_consumer) {
  EXPECT_EQ(in_the_world(sees_the_consumer_end_in_time), exit_reason::normal());
}

task<> kills_the_late(self& me, bool ordered) {
  me.trap_exits();
  const auto g = std::make_shared<gauge>();
  auto input = slowest_first(g, 6);
  input[1].p.takes = 1h;
  input[2].p.takes = 1h;
  auto s = async_stream(me, input, works,
                        {.max_concurrency = 2, .ordered = ordered, .timeout = 2s, .on_timeout = on_timeout::kill});
  std::vector<int> got = co_await drain(&s);
  if (!ordered) std::ranges::sort(got);
  EXPECT_EQ(got, ordered ? (std::vector{0, -1, -1, 3, 4, 5}) : (std::vector{-1, -1, 0, 3, 4, 5}));
  EXPECT_EQ(g->most, 2);
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}
TEST(async_stream, kills_a_job_that_is_late_when_told_to_and_goes_on) {
  EXPECT_EQ(in_the_world(kills_the_late, true), exit_reason::normal());
  EXPECT_EQ(in_the_world(kills_the_late, false), exit_reason::normal());
}

struct release_job {};
struct maybe_stuck {
  int number = 0;
  pid* waits_as = nullptr;  // null: the job does not wait
};
task<int> waits_for_release(self& me, maybe_stuck m) {
  if (m.waits_as != nullptr) {
    *m.waits_as = me.id();
    co_await me.receive<release_job>();
  }
  co_return m.number;
}
task<> streams_past_a_stuck_job(self& me, pid* stuck, std::vector<int>* got) {
  const std::vector<maybe_stuck> input{{.number = 1, .waits_as = stuck}, {.number = 2}};
  auto s = async_stream_nolink(me, input, waits_for_release,
                               {.max_concurrency = 1, .timeout = 2s, .on_timeout = on_timeout::kill});
  *got = co_await drain(&s);
}
class lines_about_streams final : public log_sink {
 public:
  void write(const log_record& r) override {
    if (r.text.find("job of a stream") != std::string_view::npos)
      all.push_back(std::string{to_string(r.level)} + " " + std::string{r.text});
  }
  std::vector<std::string> all;
};
TEST(async_stream, abandons_a_job_that_is_late_and_stuck_and_goes_on) {
  const auto log = std::make_shared<lines_about_streams>();
  sim::world w{7};
  sim::node& n = w.add_node({}, {.processes = 1000, .level = log_level::debug, .log = log});
  pid stuck;
  std::vector<int> got;
  const pid consumer = n.rt().spawn(streams_past_a_stuck_job, &stuck, &got);
  w.run_for(500ms);
  n.stick(stuck, 24h);
  n.rt().send(stuck, release_job{});
  w.run_for(6s);
  EXPECT_TRUE(n.rt().alive(stuck)) << "2 s until it is killed, and 5 s until it is abandoned";
  w.run_for(1s);
  EXPECT_FALSE(n.rt().alive(stuck));
  EXPECT_FALSE(n.rt().alive(consumer));
  EXPECT_EQ(got, (std::vector{-1, 2}));
  EXPECT_EQ(log->all, (std::vector<std::string>{"debug job of a stream was killed",
                                                "error job of a stream did not end within 5s after it was killed, "
                                                "because its code does not return; it was abandoned"}));
}

void makes_no_sense(self& me, stream_options how) {
  EXPECT_THROW((void)async_stream(me, std::vector<int>{}, squared, how), std::invalid_argument);
}
task<> asks_for_nonsense(self& me) {
  makes_no_sense(me, {.timeout = 0s});
  makes_no_sense(me, {.timeout = -1s});
  makes_no_sense(me, {.buffer = 0});
  co_return;
}
TEST(async_stream, refuses_options_that_make_no_sense) {
  EXPECT_EQ(in_the_world(asks_for_nonsense), exit_reason::normal());
}

// ---- leaving early

struct stay {};
task<> leaves_early(self& me, shared_gauge g, bool linked) {
  me.trap_exits();
  {
    auto input = slowest_first(g, 10);
    input[0].p.takes = 1ms;
    if (linked) {
      auto s = async_stream(me, input, works, {.max_concurrency = 4});
      const auto first = co_await s.next();
      EXPECT_EQ(first, result<int>{0});
    } else {
      auto s = async_stream_nolink(me, input, works, {.max_concurrency = 4});
      const auto first = co_await s.next();
      EXPECT_EQ(first, result<int>{0});
    }
  }
  const stay never = co_await me.receive<stay>();
  (void)never;
}
TEST(async_stream, left_early_kills_its_jobs_and_leaves_no_messages_and_no_links) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto g = std::make_shared<gauge>();
    sim::world w{seed};
    runtime& rt = w.add_node().rt();
    const pid p = rt.spawn(leaves_early, g, seed % 2 == 0);
    w.run();
    const auto left = rt.info(p);
    EXPECT_EQ(left->mailbox, 0U);
    EXPECT_TRUE(left->links.empty());
    EXPECT_EQ(g->now, 0);
    EXPECT_GE(g->started, 4);
    EXPECT_EQ(rt.snapshot().size(), 1U);
  }
}

task<> ends_in_the_middle(self& me, shared_gauge g, exit_reason why) {
  const auto input = slowest_first(g, 10);
  auto s = async_stream_nolink(me, input, works, {.max_concurrency = 4});
  const auto first = co_await s.next();
  (void)first;
  co_await me.exit(std::move(why));
}
TEST(async_stream, whose_consumer_ends_kills_its_jobs_whatever_the_reason) {
  for (const auto& why : {exit_reason::normal(), exit_reason::error("x")}) {
    const auto g = std::make_shared<gauge>();
    sim::world w{3};
    runtime& rt = w.add_node().rt();
    rt.spawn(ends_in_the_middle, g, why);
    w.run();
    EXPECT_EQ(g->now, 0);
    EXPECT_LT(g->started, 10);
    EXPECT_TRUE(rt.snapshot().empty());
  }
}

measured fails_at_four(measured m) {
  if (m.p.index == 4) throw std::runtime_error{"no more input"};
  return m;
}
task<> streams_a_range_that_throws(self& me, shared_gauge g) {
  const auto input = slowest_first(g, 10);
  {
    auto s = async_stream_nolink(me, input | std::views::transform(fails_at_four), works, {.max_concurrency = 3});
    std::string said;
    try {
      const std::vector<int> got = co_await drain(&s);
    } catch (const std::runtime_error& e) {
      said = e.what();
    }
    EXPECT_EQ(said, "no more input");
  }
  const stay never = co_await me.receive<stay>();
  (void)never;
}
TEST(async_stream, whose_range_throws_passes_that_on_and_leaves_nothing) {
  const auto g = std::make_shared<gauge>();
  sim::world w{3};
  runtime& rt = w.add_node().rt();
  const pid p = rt.spawn(streams_a_range_that_throws, g);
  w.run();
  EXPECT_TRUE(rt.alive(p));
  EXPECT_EQ(rt.info(p)->mailbox, 0U);
  EXPECT_EQ(g->started, 4);
  EXPECT_EQ(g->now, 0);
  EXPECT_EQ(rt.snapshot().size(), 1U);
}

task<int> streams_inside(self& me, measured m) {
  const auto input = slowest_first(m.at, 10);
  auto s = async_stream_nolink(me, input, works, {.max_concurrency = 2, .timeout = forever});
  const std::vector<int> got = co_await drain(&s);
  co_return static_cast<int>(got.size());
}
task<> leaves_the_outer_one(self& me, shared_gauge g) {
  std::vector<measured> input(5, {.p = {}, .at = g});
  auto s = async_stream(me, input, streams_inside, {.max_concurrency = 3});
  const auto first = co_await s.next();
  EXPECT_EQ(first, result<int>{10});
}
TEST(async_stream, left_early_ends_the_streams_inside_its_jobs) {
  const auto g = std::make_shared<gauge>();
  sim::world w{3};
  runtime& rt = w.add_node().rt();
  rt.spawn(leaves_the_outer_one, g);
  w.run();
  EXPECT_GE(g->started, 10);
  EXPECT_LT(g->ended, 50) << "not all were worked through";
  EXPECT_EQ(g->now, 0);
  EXPECT_TRUE(rt.snapshot().empty());
}

task<> streams_within_streams(self& me, int n) {
  auto s = async_stream(me, std::views::iota(0, n), squared, {.max_concurrency = 2});
  const std::vector<int> got = co_await drain(&s);
  EXPECT_EQ(static_cast<int>(got.size()), n);
}
task<> two_levels(self& me) {
  auto outer = async_stream(me, std::views::iota(1, 20), streams_within_streams, {.max_concurrency = 3});
  for (int i = 1; i < 20; ++i) {
    const auto r = co_await outer.next();
    EXPECT_TRUE(r.has_value() && r->has_value());
  }
}
TEST(async_stream, streams_may_be_used_inside_streams) {
  EXPECT_EQ(in_the_world(two_levels), exit_reason::normal());
  EXPECT_EQ(on_threads(two_levels), exit_reason::normal());
}

task<> leaves_early_on_threads(self& me) {
  for (int round = 0; round < 200; ++round) {
    auto s = async_stream(me, std::views::iota(0, 100), squared, {.max_concurrency = 8, .ordered = round % 2 == 0});
    for (int i = 0; i < round % 17; ++i) {
      const std::optional<result<int>> r = co_await s.next();
      EXPECT_TRUE(r.has_value() && r->has_value());
    }
  }
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}
TEST(async_stream, left_early_on_threads_leaves_nothing) {
  EXPECT_EQ(on_threads(leaves_early_on_threads), exit_reason::normal());
}

}  // namespace
