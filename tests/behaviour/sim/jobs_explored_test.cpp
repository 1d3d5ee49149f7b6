// Jobs and streams of jobs over many seeds: owners, jobs and consumers are killed at any moment, and still nothing is
// left behind, never too many run, and results come in their order.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include <coppice/behaviour/async_stream.hpp>
#include <coppice/behaviour/jobs.hpp>

#include "seeds.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

/// What all processes of one world write down. Shared, because destructors of processes run when the world ends.
struct ledger {
  std::vector<pid> jobs;  // all that ever ran, and may have to be killed
  int running = 0;
  int most = 0;
  std::size_t rounds = 0;
  std::string wrong;
  void expect(bool holds, const char* what) {
    if (!holds && wrong.empty()) wrong = what;
  }
};
using book = std::shared_ptr<ledger>;

class present {
 public:
  present(self& me, book b) : book_{std::move(b)} {
    book_->jobs.push_back(me.id());
    book_->most = std::max(book_->most, ++book_->running);
  }
  ~present() { --book_->running; }
  present(const present&) = delete;
  present& operator=(const present&) = delete;

 private:
  book book_;
};

struct work {
  int index = 0;
  std::uint64_t chance = 0;
  book into;
};
task<int> does(self& me, work w) {
  const present here{me, w.into};
  if (w.chance % 4 == 0) me.trap_exits();
  const std::chrono::microseconds pause{w.chance % 5000};
  if (w.chance % 3 != 0) co_await me.sleep(pause);
  if (w.chance % 11 == 0) throw std::runtime_error{"chance"};
  if (w.chance % 13 == 0) co_await me.exit(exit_reason::normal());
  if (w.chance % 17 == 0) co_await me.sleep(1h);
  co_return w.index;
}
std::vector<work> some_work(self& me, const book& b) {
  std::vector<work> all;
  const auto n = static_cast<int>(me.random() % 20);
  for (int i = 0; i < n; ++i) all.push_back({.index = i, .chance = me.random(), .into = b});
  return all;
}

struct rest {};

/// The mailbox of an owner holds what was sent to it and nothing else.
task<> expect_no_mail(self& me, book b) {
  const auto m = co_await me.receive<any_message>(0ns);
  b->expect(std::holds_alternative<timed_out>(m), "a message was left behind");
}

// ---- streams

template <class Stream>
task<> consume(self& me, Stream* s, book b, bool ordered, std::size_t most_results) {
  int last = -1;
  for (std::size_t i = 0; i < most_results; ++i) {
    const auto r = co_await s->next();
    if (!r) co_return;
    if (*r) {
      b->expect(!ordered || **r > last, "results are out of order");
      last = **r;
    } else {
      b->expect(r->error().code() == errc::exited || r->error().code() == errc::timeout, "a strange error");
    }
    if (me.random() % 5 == 0) co_await me.sleep(3ms);
  }
}
task<> streams(self& me, book b) {
  const bool linked = me.random() % 2 == 0;
  me.trap_exits(linked && me.random() % 4 != 0 ? trap::on : trap::off);
  const stream_options how{.max_concurrency = 4,
                           .ordered = me.random() % 2 == 0,
                           .timeout = 6ms,
                           .on_timeout = on_timeout::kill,
                           .buffer = 1 + me.random() % 8};
  const std::vector<work> input = some_work(me, b);
  const std::size_t wanted = me.random() % 25;
  if (linked) {
    auto s = async_stream(me, input, does, how);
    co_await consume(me, &s, b, how.ordered, wanted);
  } else {
    auto s = async_stream_nolink(me, input, does, how);
    co_await consume(me, &s, b, how.ordered, wanted);
  }
  co_await me.sleep(1s);
  b->expect(b->running == 0, "a job runs although its stream is gone");
  ++b->rounds;
  const auto told = co_await me.receive<rest>();  // looked at from outside now
  (void)told;
}

// ---- jobs

task<> one_of_all(self& me, job<int>* j, std::size_t how) {
  std::optional<result<int>> got;
  switch (how) {
    case 0: got = co_await j->await(2ms); break;
    case 1: got = co_await j->yield(1ms); break;
    case 2: got = co_await j->shutdown(1ms); break;
    case 3: got = co_await j->kill(); break;
    case 4: got = j->ignore(); break;
    default: co_await me.sleep(2ms); break;
  }
}
/// Whatever was done with the jobs before, now they are ended for good.
task<> end_all(std::vector<job<int>>* jobs, book b) {
  for (job<int>& j : *jobs) {
    const std::optional<result<int>> got = co_await j.kill();
    b->expect(!got || got->has_value() || got->error().code() != errc::timeout, "a killed job is late");
  }
}
task<> owns_jobs(self& me, book b) {
  me.trap_exits();
  const std::vector<work> input = some_work(me, b);
  std::vector<job<int>> jobs;
  for (const work& w : input) jobs.push_back(w.chance % 2 == 0 ? async_job(me, does, w) : async_nolink(me, does, w));
  for (job<int>& j : jobs) {
    const std::size_t how = me.random() % 6;
    co_await one_of_all(me, &j, how);
  }
  const yield_options briefly{.timeout = 2ms, .limit = 1 + me.random() % 20};
  const auto some = co_await yield_many(jobs, briefly);
  b->expect(some.size() == jobs.size(), "yield_many has lost some");
  const result<std::vector<int>> all = co_await await_many(jobs, 1ms);
  b->expect(!all || all->size() == jobs.size(), "await_many has lost some");
  co_await end_all(&jobs, b);
  co_await expect_no_mail(me, b);
  ++b->rounds;
  const auto told = co_await me.receive<rest>();
  (void)told;
}

// ---- the world

using body = task<> (*)(self&, book);

/// What is left of the processes once all is quiet.
void look_at_what_is_left(runtime& rt, pid owner, const ledger& b) {
  sim::require(b.wrong.empty(), b.wrong);
  const auto left = rt.info(owner);
  if (!left) return;  // it was killed
  sim::require(left->mailbox == 0, "messages are left in the mailbox of the owner");
  sim::require(left->links.empty(), "links are left");
  sim::require(left->monitors == 0 && left->monitored == 0, "monitors are left");
}

void property(sim::world& w, body what, int most) {
  const auto b = std::make_shared<ledger>();
  sim::node& n = w.add_node();
  runtime& rt = n.rt();
  const pid owner = rt.spawn(what, b);
  const std::uint64_t kills = w.chance().below(6);
  const bool kills_owner = w.chance().below(3) == 0;
  for (std::uint64_t i = 0; i < kills; ++i) {
    w.run_for(w.chance().between(0ns, 2ms));
    if (kills_owner && i == 2) rt.kill(owner);
    if (b->jobs.empty()) continue;
    const pid victim = b->jobs[w.chance().below(b->jobs.size())];
    if (w.chance().below(2) == 0)
      rt.kill(victim);
    else
      rt.exit(victim, exit_reason::error("from outside"));
  }
  if (w.chance().below(10) == 0) {
    n.crash();
    sim::require(b->running == 0, "a crash has left a job");
    return;
  }
  w.run_for(30s);
  look_at_what_is_left(rt, owner, *b);
  sim::require(most == 0 || b->most <= most, "too many at a time");
  w.run();
  sim::require(rt.alive(owner) || what == owns_jobs || b->running == 0, "a job has outlived its stream");
  rt.send(owner, rest{});
  w.run();
}

TEST(jobs_explored, streams_keep_order_and_bounds_and_leave_nothing) {
  seeds::hold(800, [](sim::world& w) { property(w, streams, 4); });
}
TEST(jobs_explored, jobs_are_ended_and_forgotten_without_a_trace) {
  seeds::hold(800, [](sim::world& w) { property(w, owns_jobs, 0); });
}

}  // namespace
