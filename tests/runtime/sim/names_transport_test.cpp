// The name of a process is free before its end is told to others: checked at the moment when the signal leaves.
#include <gtest/gtest.h>

#include <coppice/runtime/transport.hpp>
#include <coppice/sim/world.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct go {};
struct order {
  exit_reason reason;
};
struct ask {
  using reply = int;
};

/// Hands everything on, and looks the name up whenever something leaves that tells of an end.
class spying_transport final : public transport {
 public:
  struct sight {
    std::string what;
    pid holder;
  };
  spying_transport(std::shared_ptr<transport> real, runtime& rt, std::vector<sight>* into)
      : real_{std::move(real)}, rt_{rt}, into_{into} {}
  connection_number connect(node_id node) override { return real_->connect(node); }
  bool send(connection_number over, parcel& p) override {
    into_->push_back({std::string{p.type()}, rt_.where("db")});
    return real_->send(over, p);
  }

 private:
  std::shared_ptr<transport> real_;
  runtime& rt_;
  std::vector<sight>* into_;
};

enum class way : std::uint8_t { returns, fails, exits, stops, is_killed, is_signalled, is_abandoned };

task<> database(self& me, way how) {
  const go begin = co_await me.receive<go>();
  (void)begin;
  switch (how) {
    case way::returns: co_return;
    case way::fails: throw std::runtime_error{"out of luck"};
    case way::exits: co_await me.exit(exit_reason::shutdown()); break;
    case way::stops: me.stop(exit_reason::error("stopped")); break;
    default: break;
  }
  co_await me.sleep(1h);
}

task<> bereaved(self& me, pid other, int* told) {
  me.trap_exits();
  me.link(other);
  me.monitor(other);
  for (;;) {
    const auto m = co_await me.receive<exited, down>();
    (void)m;
    ++*told;
  }
}
task<> calls_in_vain(self&, pid other, bool* failed) {
  const result<int> got = co_await call<ask>(other).within(forever);
  *failed = !got;
}
void end_in_this_way(way how, std::uint64_t seed) {
  SCOPED_TRACE("way " + std::to_string(static_cast<int>(how)) + ", seed " + std::to_string(seed));
  int told = 0;
  bool failed = false;
  std::vector<spying_transport::sight> left;
  sim::world w{seed};
  sim::node& a = w.add_node();
  sim::node& b = w.add_node();
  a.rt().connect(std::make_shared<spying_transport>(w.net().attach(a.id()), a.rt(), &left));
  const auto db = a.rt().spawn({.name = "db"}, database, how);
  ASSERT_TRUE(db);
  w.run();
  b.rt().spawn(bereaved, *db, &told);
  w.run();
  ASSERT_EQ(a.rt().where("db"), *db);
  left.clear();
  b.rt().spawn(calls_in_vain, *db, &failed);
  w.run();  // the request is there, put aside
  if (how == way::is_abandoned) a.stick(*db, 1h);
  a.rt().send(*db, go{});
  w.run_for(1s);
  if (how == way::is_killed) a.rt().kill(*db);
  if (how == way::is_signalled) a.rt().exit(*db, exit_reason::error("enough"));
  if (how == way::is_abandoned) {
    EXPECT_TRUE(a.rt().abandon(*db));
  }
  EXPECT_TRUE(w.run());
  EXPECT_EQ(told, 2);
  EXPECT_TRUE(failed);
  EXPECT_EQ(left.size(), 3U) << "an EXIT, a DOWN, and the answer to the request";
  for (const auto& one : left) EXPECT_EQ(one.holder, pid{}) << one.what << " left before the name was free";
}

TEST(names_transport, the_news_of_an_end_leave_once_the_name_is_free) {
  for (const way how : {way::returns, way::fails, way::exits, way::stops, way::is_killed, way::is_signalled})
    for (std::uint64_t seed = 1; seed <= 50; ++seed) end_in_this_way(how, seed);
}

TEST(names_transport, the_news_that_a_process_was_abandoned_leave_once_the_name_is_free) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) end_in_this_way(way::is_abandoned, seed);
}

}  // namespace
