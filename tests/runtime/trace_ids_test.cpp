// Trace ids: which messages, processes and log records belong to a trace.
#include <gtest/gtest.h>

#include <map>

#include <coppice/runtime/runtime.hpp>
#include <coppice/sim/world.hpp>

#include "recorder.hpp"
#include "runtime/internal/kernel_parts.hpp"
#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

// ---- the text

TEST(trace_context, reads_what_it_writes) {
  const trace_context t{.id_high = 0x0af7651916cd43dd, .id_low = 0x8448eb211c80319c, .span = 0xb7ad6b7169203331};
  EXPECT_EQ(t.traceparent(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  EXPECT_EQ(trace_context::from(t.traceparent()), t);
  const auto unsampled = trace_context::from("00-0af7651916cd43dd8448eb211c80319c-00000000000000ff-00");
  ASSERT_TRUE(unsampled);
  EXPECT_FALSE(unsampled->sampled);
  EXPECT_EQ(unsampled->span_id(), "00000000000000ff");
}

TEST(trace_context, accepts_what_later_versions_add) {
  EXPECT_TRUE(trace_context::from("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more"));
  EXPECT_TRUE(trace_context::from("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-09"));
}

TEST(trace_context, refuses_headers_that_are_not_valid) {
  for (const char* text : {
           "",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
           "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.more",
           "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
           "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333x-01",
           "0x-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
       })
    EXPECT_FALSE(trace_context::from(text)) << text;
}

// ---- what follows a trace

struct ask {
  using reply = int;
};
struct note {};
struct wanted {};

const trace_context outside{.id_high = 1, .id_low = 2, .span = 3};

/// What each process saw, by a name.
using seen = std::map<std::string, trace_context>;

struct stage {
  explicit stage(bool on = true) : node{world.add_node("a", options(on))} {}
  static runtime_options options(bool on) { return {.processes = 1U << 10U, .level = log_level::off, .trace_ids = on}; }
  runtime& rt() { return node.rt(); }
  /// Sends from a thread that belongs to `outside`.
  template <class M>
  void send_traced(pid to, M m) {
    const trace_scope scope{outside};
    rt().send(to, std::move(m));
  }
  sim::world world{7};
  sim::node& node;
};

void expect_step_of(const trace_context& got, const trace_context& cause) {
  EXPECT_EQ(got.id(), cause.id());
  EXPECT_EQ(got.parent, cause.span);
  EXPECT_NE(got.span, cause.span);
}

struct last_server {
  seen* into;
  int handle(ask, self& me) {
    (*into)["last"] = me.trace();
    return 1;
  }
};
struct middle_server {
  using protocol = coppice::protocol<note>;
  seen* into;
  ref<last_server> next;
  task<> handle(note, self& me) {
    (*into)["middle"] = me.trace();
    (void)co_await next.call<ask>();
    (*into)["after the answer"] = me.trace();
  }
};

TEST(trace_ids, follow_a_message_through_the_calls_that_it_causes) {
  stage s;
  seen got;
  const ref<last_server> last = s.rt().spawn<last_server>(&got);
  const ref<middle_server> middle = s.rt().spawn<middle_server>(&got, last);
  {
    const trace_scope scope{outside};
    s.rt().cast<note>(middle);
  }
  s.world.run();
  expect_step_of(got.at("middle"), outside);
  expect_step_of(got.at("last"), got.at("middle"));
  EXPECT_EQ(got.at("after the answer"), got.at("middle")) << "the answer continues the same step";
}

TEST(trace_ids, are_off_by_default) {
  stage s{false};
  seen got;
  const ref<last_server> last = s.rt().spawn<last_server>(&got);
  {
    const trace_scope scope{outside};
    s.rt().cast<ask>(last);
  }
  s.world.run();
  EXPECT_FALSE(got.at("last"));
}

task<> starts_a_trace(self& me, seen* into) {
  (*into)["before"] = me.trace();
  (*into)["own"] = me.begin_trace();
  (*into)["continued"] = me.begin_trace(outside);
  co_return;
}

TEST(trace_ids, can_be_begun_or_continued_by_a_process) {
  stage s;
  seen got;
  s.rt().spawn(starts_a_trace, &got);
  s.world.run();
  EXPECT_FALSE(got.at("before"));
  EXPECT_TRUE(got.at("own"));
  expect_step_of(got.at("continued"), outside);
}

task<> selective(self& me, seen* into) {
  co_await me.receive<wanted>();
  (*into)["wanted"] = me.trace();
  co_await me.sleep(1s);
  (*into)["after a sleep"] = me.trace();
  co_await me.receive<note>();
  (*into)["put aside"] = me.trace();
}

TEST(trace_ids, stay_with_a_message_that_is_put_aside) {
  stage s;
  seen got;
  const pid p = s.rt().spawn(selective, &got);
  s.send_traced(p, note{});
  s.world.run();
  s.rt().send(p, wanted{});
  s.world.run();
  EXPECT_FALSE(got.at("wanted")) << "it was sent outside of the trace";
  EXPECT_FALSE(got.at("after a sleep"));
  expect_step_of(got.at("put aside"), outside);
}

TEST(trace_ids, of_a_message_that_is_put_aside_do_not_replace_the_current_one) {
  stage s;
  seen got;
  const pid p = s.rt().spawn(selective, &got);
  s.send_traced(p, wanted{});
  s.world.run_for(100ms);
  s.rt().send(p, note{});  // arrives during the sleep, and belongs to no trace
  s.world.run();
  expect_step_of(got.at("wanted"), outside);
  EXPECT_EQ(got.at("after a sleep"), got.at("wanted"));
  EXPECT_FALSE(got.at("put aside"));
}

task<> child(self& me, seen* into) {
  (*into)["child"] = me.trace();
  co_await me.receive<note>();
  (*into)["alarm"] = me.trace();
}
task<> parent(self& me, seen* into) {
  co_await me.receive<wanted>();
  (*into)["parent"] = me.trace();
  const pid c = me.spawn(child, into);
  me.send_after(1s, c, note{});
}

TEST(trace_ids, reach_spawned_processes_and_messages_of_timers) {
  stage s;
  seen got;
  const pid p = s.rt().spawn(parent, &got);
  s.send_traced(p, wanted{});
  s.world.run();
  expect_step_of(got.at("child"), got.at("parent"));
  expect_step_of(got.at("alarm"), got.at("parent"));
}

TEST(trace_ids, pass_through_a_limited_mailbox) {
  stage s;
  seen got;
  const spawn_options limited{.mailbox = {.capacity = 1}};
  const pid p = *s.rt().spawn(limited, parent, &got);
  s.world.run();
  s.send_traced(p, wanted{});
  s.send_traced(p, wanted{});  // there is no room for it: its trace is forgotten
  s.world.run();
  expect_step_of(got.at("parent"), outside);
  expect_step_of(got.at("child"), got.at("parent"));
  EXPECT_EQ(s.rt().host().parts().trace_ids.in_flight(), 0U);
}

TEST(trace_ids, reach_processes_of_other_nodes) {
  stage s;
  seen got;
  sim::node& other = s.world.add_node("b", stage::options(true));
  const ref<last_server> last = other.rt().spawn<last_server>(&got);
  const ref<middle_server> middle = s.rt().spawn<middle_server>(&got, last);
  s.send_traced(middle.id(), note{});
  s.world.run();
  expect_step_of(got.at("last"), got.at("middle"));
  EXPECT_EQ(got.at("after the answer"), got.at("middle"));
}

task<> is_told_of_ends(self& me, seen* into) {
  me.trap_exits();
  co_await me.receive<exited>();
  (*into)["told"] = me.trace();
}
task<> ends_when_asked(self& me, pid other) {
  co_await me.receive<wanted>();
  me.exit(other, exit_reason::shutdown());
}

TEST(trace_ids, reach_exits_of_processes_of_other_nodes) {
  stage s;
  seen got;
  sim::node& other = s.world.add_node("b", stage::options(true));
  const pid told = other.rt().spawn(is_told_of_ends, &got);
  const pid ends = s.rt().spawn(ends_when_asked, told);
  s.world.run();
  s.send_traced(ends, wanted{});
  s.world.run();
  EXPECT_EQ(got.at("told").id(), outside.id());
  EXPECT_EQ(s.rt().host().parts().trace_ids.in_flight(), 0U);
  EXPECT_EQ(other.rt().host().parts().trace_ids.in_flight(), 0U);
}

struct server_with_downs {
  using protocol = coppice::protocol<wanted>;
  seen* into;
  void handle(wanted, self& me) {
    (*into)["wanted"] = me.trace();
    me.monitor(me.spawn(child, into));
  }
  void handle(down, self& me) { (*into)["down"] = me.trace(); }
};

TEST(trace_ids, do_not_stay_with_a_server_for_what_comes_later) {
  stage s;
  seen got;
  const ref<server_with_downs> p = s.rt().spawn<server_with_downs>(&got);
  s.send_traced(p.id(), wanted{});
  s.world.run();
  for (const process_info& each : s.rt().snapshot())
    if (each.id != p.id()) s.rt().kill(each.id);
  s.world.run();
  EXPECT_TRUE(got.at("wanted"));
  EXPECT_FALSE(got.at("down"));
}

task<> asks(self&, pid whom) {
  const result<int> answer = co_await call<ask>(whom);
  (void)answer;
}

TEST(trace_ids, of_messages_that_nobody_receives_are_forgotten) {
  stage s;
  seen got;
  const pid gone = s.rt().spawn(starts_a_trace, &got);
  s.world.run();
  for (int i = 0; i < 100; ++i) s.send_traced(gone, note{});
  const pid killed = s.rt().spawn(parent, &got);
  s.world.run();
  {
    const trace_scope scope{outside};
    s.rt().spawn(asks, killed);  // a request in its queue
  }
  s.send_traced(killed, note{});  // put aside
  s.world.run();
  s.rt().kill(killed);
  s.send_traced(killed, note{});  // behind the kill
  s.world.run();
  EXPECT_EQ(s.rt().host().parts().trace_ids.in_flight(), 0U);
}

TEST(trace_ids, are_the_same_in_every_run_of_a_seed) {
  const auto run = [] {
    stage s;
    seen got;
    const pid p = s.rt().spawn(parent, &got);
    s.send_traced(p, wanted{});
    s.world.run();
    return got;
  };
  EXPECT_EQ(run(), run());
}

task<> fails_when_asked(self& me) {
  co_await me.receive<wanted>();
  throw std::runtime_error{"asked to"};
}
task<> is_told(self& me, seen* into, pid* spawned) {
  me.trap_exits();
  *spawned = me.spawn_link(fails_when_asked);
  co_await me.receive<exited>();
  (*into)["told"] = me.trace();
}

TEST(trace_ids, reach_those_who_are_told_of_a_failure) {
  stage s;
  seen got;
  pid fails;
  s.rt().spawn(is_told, &got, &fails);
  s.world.run();
  s.send_traced(fails, wanted{});
  s.world.run();
  EXPECT_EQ(got.at("told").id(), outside.id());
  EXPECT_EQ(s.rt().host().parts().trace_ids.in_flight(), 0U);
}

// ---- logs and threads

task<> logs(self& me) {
  co_await me.receive<wanted>();
  me.log(log_level::error, "as asked");
  co_await me.receive<note>();
  throw std::runtime_error{"no more"};
}

TEST(trace_ids, are_fields_of_log_records) {
  const auto log = std::make_shared<recorder>();
  runtime rt{{.workers = 2, .log = log, .trace_ids = true}};
  const pid p = rt.spawn(logs);
  {
    const trace_scope scope{outside};
    rt.send(p, wanted{});
    rt.send(p, note{});
  }
  rt.wait(p);
  rt.log(log_level::error, "outside");
  const auto lines = log->all();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].fields.at("trace"), outside.id());
  EXPECT_EQ(lines[0].fields.at("span").size(), 16U);
  EXPECT_EQ(lines[1].fields.at("trace"), outside.id()) << "the failure";
  EXPECT_NE(lines[1].fields.at("span"), lines[0].fields.at("span"));
  EXPECT_FALSE(lines[2].fields.contains("trace"));
}

TEST(trace_ids, of_a_thread_end_with_the_scope) {
  runtime rt{{.workers = 2, .level = log_level::off, .trace_ids = true}};
  seen got;
  const ref<last_server> last = rt.spawn<last_server>(&got);
  {
    const trace_scope scope{outside};
    {
      const trace_scope inner{trace_context{.id_high = 9, .id_low = 9, .span = 9}};
      EXPECT_TRUE(rt.call(last.call<ask>()));
      EXPECT_EQ(got.at("last").id_high, 9U);
    }
    EXPECT_TRUE(rt.call(last.call<ask>()));
    EXPECT_EQ(got.at("last").id(), outside.id());
  }
  EXPECT_TRUE(rt.call(last.call<ask>()));
  EXPECT_FALSE(got.at("last"));
}

task<> works_elsewhere(self& me, runtime_handle to, pid other) {
  co_await me.receive<wanted>();
  co_await me.blocking([](runtime_handle h, pid p) { h.send(p, wanted{}); }, to, other);
}

TEST(trace_ids, reach_messages_that_blocking_work_sends) {
  stage s;
  seen got;
  const pid other = s.rt().spawn(selective, &got);
  const pid p = s.rt().spawn(works_elsewhere, s.rt().handle(), other);
  s.send_traced(p, wanted{});
  s.world.run();
  EXPECT_EQ(got.at("wanted").id(), outside.id());
}

}  // namespace
