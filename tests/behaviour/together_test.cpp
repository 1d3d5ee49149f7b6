// Behaviours are servers: they are started and stopped as such, and use each other.
#include <stdexcept>
#include <string>

#include <coppice/behaviour/agent.hpp>
#include <coppice/behaviour/async_stream.hpp>
#include <coppice/behaviour/event_bus.hpp>
#include <coppice/behaviour/registry.hpp>
#include <coppice/behaviour/server.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace test;

int no_value_today() { throw std::runtime_error{"no value today"}; }

task<> starts_agents(self& me) {
  me.trap_exits();
  const spawn_options linked{.link = true};
  const result<ref<agent<int>>> good = co_await start<agent<int>>(me, linked, 41);
  EXPECT_TRUE(good.has_value());
  const result<ref<agent<int>>> bad = co_await start<agent<int>>(me, linked, &no_value_today);
  EXPECT_EQ(bad.error().code(), errc::start_failed);
  EXPECT_NE(bad.error().to_string().find("no value today"), std::string::npos) << bad.error();
  const result<void> over = co_await stop(me, *good);
  EXPECT_TRUE(over.has_value());
  const exited x = co_await me.receive<exited>();
  EXPECT_EQ(x.from, good->id());
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}
TEST(behaviours, starting_an_agent_waits_for_its_initial_value) {
  EXPECT_EQ(in_the_world(starts_agents), exit_reason::normal());
}

using names = registry<std::string>;
task<> starts_a_keeper(self& me) {
  const names all;
  const spawn_options linked{.link = true};
  const result<ref<names::keeper>> keeper = co_await start<names::keeper>(me, linked, all);
  EXPECT_TRUE(keeper.has_value());
  EXPECT_TRUE(all.register_as(me, "a").has_value()) << "it keeps the registry from its start";
  all.unregister(me, "a");
  const result<void> over = co_await stop(me, *keeper);
  EXPECT_TRUE(over.has_value());
  EXPECT_EQ(all.register_as(me, "a").error().code(), errc::noproc);
}
TEST(behaviours, a_keeper_is_started_and_stopped_as_any_server) {
  EXPECT_EQ(in_the_world(starts_a_keeper), exit_reason::normal());
}

/// What became of a bus's handlers.
struct silent {
  explicit silent(std::shared_ptr<int> n) : alive{std::move(n)} {}
  void handle(const int&) {}
  std::shared_ptr<int> alive;
};
task<> stops_a_bus(self& me) {
  const auto mark = std::make_shared<int>(0);
  const spawn_options linked{.link = true};
  const result<ref<event_bus<int>>> bus = co_await start<event_bus<int>>(me, linked);
  const result<void> added = co_await add_handler<silent>(*bus, "a", mark);
  EXPECT_EQ(mark.use_count(), 2);
  const result<void> over = co_await stop(me, *bus);
  EXPECT_TRUE(over.has_value());
  EXPECT_EQ(mark.use_count(), 1) << "its handlers end with it";
}
TEST(behaviours, a_bus_takes_its_handlers_with_it) { EXPECT_EQ(in_the_world(stops_a_bus), exit_reason::normal()); }

// ---- a server whose handlers wait for jobs

task<int> slow_square(self& me, int n) {
  co_await me.sleep(1s);
  if (n < 0) throw std::runtime_error{"a negative number"};
  co_return n* n;
}
class calculator {
 public:
  struct square {
    using reply = int;
    int of;
  };
  struct sum_of_squares {
    using reply = int;
    int up_to;
  };
  using protocol = coppice::protocol<square, sum_of_squares>;

  task<int> handle(square m, self& me) {
    auto j = async_job(me, slow_square, m.of);
    const result<int> r = co_await j.await();
    co_return r.value_or(-1);
  }
  task<int> handle(sum_of_squares m, self& me) {
    auto all = async_stream(me, std::views::iota(1, m.up_to + 1), slow_square, {.max_concurrency = 10});
    int sum = 0;
    for (;;) {
      const std::optional<result<int>> r = co_await all.next();
      if (!r) co_return sum;
      sum += **r;
    }
  }
};
task<> calculates(self& me) {
  me.trap_exits();
  const spawn_options linked{.link = true};
  const result<ref<calculator>> c = co_await start<calculator>(me, linked);
  const result<int> nine = co_await c->call<calculator::square>(3);
  EXPECT_EQ(nine, 9);
  const result<int> sum = co_await c->call<calculator::sum_of_squares>(10);
  EXPECT_EQ(sum, 385);
  const result<int> none = co_await c->call<calculator::square>(-1);
  EXPECT_EQ(none.error().code(), errc::exited) << "a linked job takes the server with it";
  const exited x = co_await me.receive<exited>();
  EXPECT_EQ(x.reason.text(), "a negative number");
}
TEST(behaviours, a_handler_that_waits_may_wait_for_jobs) { EXPECT_EQ(in_the_world(calculates), exit_reason::normal()); }

}  // namespace
