// Trace ids of actors.
#include <gtest/gtest.h>

#include <map>

#include <coppice/actor/actor.hpp>
#include <coppice/actor/detail/actor_signal.hpp>
#include <coppice/sim/world.hpp>

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace std::chrono_literals;

struct ask {
  using reply = int;
};
struct work {};
struct keep {};
struct release_kept {};

const trace_context outside{.id_high = 1, .id_low = 2, .span = 3};
using seen = std::map<std::string, trace_context>;

struct answers {
  using protocol = coppice::protocol<ask>;
  int handle(ask, context& me) {
    (*into)["answers"] = me.trace();
    return 1;
  }
  seen* into;
};

struct worker {
  using protocol = coppice::protocol<work, keep, release_kept>;
  worker(seen* s, actor_ref<answers> to) : into{s}, next{to} {}
  void handle(work, context& me) {
    (*into)["work"] = me.trace();
    me.reenter_after(me.call(next.call<ask>()),
                     [this](const result<int>&, context& again) { (*into)["continuation"] = again.trace(); });
  }
  void handle(keep m, context& me) {
    if (open) {
      (*into)["kept"] = me.trace();
    } else {
      me.stash(m);
    }
  }
  void handle(release_kept, context& me) {
    open = true;
    me.unstash_all();
  }
  seen* into;
  actor_ref<answers> next;
  bool open = false;
};

struct stage {
  runtime& rt() { return node.rt(); }
  template <class M>
  void send_traced(pid to, M m) {
    const trace_scope scope{outside};
    rt().send(to, m);
  }
  sim::world world{11};
  sim::node& node = world.add_node("a", {.processes = 1U << 10U, .level = log_level::off, .trace_ids = true});
  seen got;
};

TEST(trace_ids_of_actors, stay_with_the_message_up_to_which_signals_were_searched) {
  stage s;
  const auto next = *spawn_actor(s.rt(), {.name = "next"}, props<answers>(&s.got));
  const auto p = *spawn_actor(s.rt(), {.name = "worker"}, props<worker>(&s.got, next));
  s.world.run();
  // The search for the signal goes through so much mail that its end is marked: that is the last message.
  for (int i = 0; i < 100; ++i) s.rt().send(p.id(), work{});
  detail::send_signal(s.rt().host(), p.id(), detail::signals::future_timed_out{.number = 1'000});  // of no future
  s.send_traced(p.id(), work{});
  s.world.run();
  EXPECT_EQ(s.got.at("work").id(), outside.id());
}

TEST(trace_ids_of_actors, follow_messages_calls_and_continuations) {
  stage s;
  const actor_ref<answers> a = spawn_actor(s.rt(), props<answers>(&s.got));
  const actor_ref<worker> w = spawn_actor(s.rt(), props<worker>(&s.got, a));
  s.send_traced(w.id(), work{});
  s.rt().send(w.id(), release_kept{});  // handled before the continuation, and not part of the trace
  s.world.settle();
  EXPECT_EQ(s.got.at("work").parent, outside.span);
  EXPECT_EQ(s.got.at("answers").parent, s.got.at("work").span);
  EXPECT_EQ(s.got.at("continuation"), s.got.at("work"));
}

TEST(trace_ids_of_actors, stay_with_stashed_messages) {
  stage s;
  const actor_ref<answers> a = spawn_actor(s.rt(), props<answers>(&s.got));
  const actor_ref<worker> w = spawn_actor(s.rt(), props<worker>(&s.got, a));
  s.send_traced(w.id(), keep{});
  s.rt().send(w.id(), release_kept{});
  s.world.settle();
  EXPECT_EQ(s.got.at("kept").id(), outside.id());
  EXPECT_EQ(s.got.at("kept").parent, outside.span);
}

}  // namespace
