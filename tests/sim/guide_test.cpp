// The code of docs/guide/simulation.md, which quotes it.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include <coppice/env/environment_wrapper.hpp>
#include <coppice/sim/explore.hpp>

namespace coppice::guide {

using namespace std::chrono_literals;

task<> worker(self& me) { co_await me.sleep(12h); }

void a_day() {
  sim::world w{42};
  runtime& rt = w.add_node().rt();
  const pid p = rt.spawn(worker);
  w.run_for(11h);
  sim::require(rt.alive(p), "it ended too early");
  w.run_for(2h);
  sim::require(!rt.alive(p), "it is still there");
}

void nothing_is_lost(sim::world& w) {
  sim::node& here = w.add_node("client");
  here.rt().spawn(worker);
  w.run_for(w.chance().between(0ms, 60ms));
  here.crash();
  sim::require(!here.up(), "it should be down");
}

void tries_it() {
  const sim::exploration how{.name = "nothing is lost", .seeds = 2000, .replay = "my_tests --only nothing_is_lost"};
  const std::string report = sim::explore(how, nothing_is_lost);
  if (!report.empty()) std::cerr << report << '\n';
}

class always_four final : public random_source {
 public:
  std::uint64_t next() override { return 4; }
};

class predictable final : public environment_wrapper {
 public:
  using environment_wrapper::environment_wrapper;
  random_source& random() noexcept override { return random_; }

 private:
  always_four random_;
};

task<> rolls(self& me, std::uint64_t* into) {
  *into = me.random();
  co_return;
}

void with_one_part_replaced() {
  std::uint64_t rolled = 0;
  runtime rt{std::make_shared<predictable>(real_environment()), {.workers = 1}};
  rt.wait(rt.spawn(rolls, &rolled));
  EXPECT_EQ(rolled, 4U);
}

TEST(guide_simulation, holds) {
  with_one_part_replaced();
  a_day();
  tries_it();
}

}  // namespace coppice::guide
