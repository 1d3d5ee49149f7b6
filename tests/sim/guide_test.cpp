// The code of docs/guide/simulation.md, which quotes it.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

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

TEST(guide_simulation, holds) {
  a_day();
  tries_it();
}

}  // namespace coppice::guide
