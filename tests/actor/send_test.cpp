// What a send of an actor does, with and without middleware, and what a context makes only when it is needed.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include <coppice/actor/actor.hpp>
#include <coppice/runtime/runtime.hpp>

namespace {

using namespace coppice;
using namespace coppice::actor;

struct number {
  int n = 0;
};
struct owned {
  std::unique_ptr<int> n;
};
struct total {
  using reply = int;
};
struct sink {
  using protocol = coppice::protocol<number, owned, total>;
  void handle(number m) { sum += m.n; }
  void handle(owned m) { sum += *m.n; }
  int handle(total) const { return sum; }
  int sum = 0;
};

struct push {
  using reply = void;
};
struct source {
  using protocol = coppice::protocol<push>;
  explicit source(actor_ref<sink> s) : to{s} {}
  void handle(push, context& me) {
    const number again{1};
    me.cast<number>(to, again);
    me.cast<number>(to, again);
    me.cast<number>(to, 10);
    me.send(to.id(), number{100});
    me.cast<owned>(to, std::make_unique<int>(1000));
  }
  actor_ref<sink> to;
};

int sum_of(runtime& rt, const props<source>& how, actor_ref<sink> to) {
  const auto from = spawn_actor(rt, how);
  EXPECT_TRUE(rt.call(from.call<push>()).has_value());
  return rt.call(to.call<total>()).value_or(-1);
}

TEST(send, of_lvalues_rvalues_and_what_can_only_be_moved) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  const auto to = spawn_actor(rt, props<sink>());
  EXPECT_EQ(sum_of(rt, props<source>(to), to), 1112);
}

TEST(send, middleware_sees_what_is_sent_and_may_keep_it_back) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  const auto to = spawn_actor(rt, props<sink>());
  std::atomic<int> seen{0};
  const auto how = props<source>(to).with({.on_send = {[&](context&, pid, const message_view& what, const auto& next) {
                                             if (const auto* n = what.get_if<number>()) seen += n->n;
                                             if (const auto* o = what.get_if<owned>()) seen += *o->n;
                                             const auto* n = what.get_if<number>();
                                             if (n == nullptr || n->n != 10) next();
                                           }}});
  EXPECT_EQ(sum_of(rt, how, to), 1102);
  EXPECT_EQ(seen, 1112);
}

// Begins or stops to watch, and replies with the number of ends that it was told of.
struct look {
  using reply = int;
  bool watch = true;
};
struct watcher {
  using protocol = coppice::protocol<look, total>;
  explicit watcher(pid w) : whom{w} {}
  int handle(look m, context& me) {
    if (m.watch)
      me.watch(whom);
    else
      me.unwatch(whom);
    return ends;
  }
  int handle(total) const { return ends; }
  void handle(const terminated& t) { ends += t.who == whom ? 1 : 0; }
  pid whom;
  int ends = 0;
};

TEST(send, a_watch_and_an_unwatch_are_of_the_actor) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  const auto whom = spawn_actor(rt, props<sink>());
  const auto one = spawn_actor(rt, props<watcher>(whom.id()));
  const auto two = spawn_actor(rt, props<watcher>(whom.id()));
  EXPECT_EQ(rt.call(one.call<look>(true)), 0);
  EXPECT_EQ(rt.call(two.call<look>(true)), 0);
  EXPECT_EQ(rt.call(two.call<look>(false)), 0);
  stop_actor(rt, whom.id());
  while (rt.call(one.call<total>()) == 0) {}
  EXPECT_EQ(rt.call(one.call<total>()), 1);
  EXPECT_EQ(rt.call(two.call<total>()), 0);
}

TEST(send, to_a_pid_of_an_unknown_node_reaches_nobody_here) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  const auto here = spawn_actor(rt, props<sink>());
  const node_id elsewhere{here.id().node().value() + 1};
  const pid namesake = pid::from_parts(elsewhere, here.id().index(), here.id().serial());
  rt.send(namesake, number{5});
  stop_actor(rt, namesake);
  const auto who = spawn_actor(rt, props<watcher>(namesake));
  EXPECT_EQ(rt.call(who.call<look>(true)), 0);
  while (rt.call(who.call<total>()) == 0) {}
  EXPECT_EQ(rt.call(here.call<total>()), 0);
  EXPECT_GE(rt.counters().dead_letters, 1U);
}

}  // namespace
