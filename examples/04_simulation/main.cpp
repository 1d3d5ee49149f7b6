// A property, tried in many simulated worlds: what a store has confirmed survives a power cut of its machine.
//
// Each seed is another world: other interleavings, other delays of packets, another moment of the power cut. All of
// them together take a moment, because simulated time costs nothing.
#include <chrono>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include <coppice/coppice.hpp>
#include <coppice/sim/explore.hpp>

using namespace std::chrono_literals;
using coppice::pid;
using coppice::ref;
using coppice::result;
using coppice::self;
using coppice::task;
namespace sim = coppice::sim;

namespace {

using disk = std::set<int>;  // stands for what outlives a power cut

enum class writes : bool { at_once, later };

class store {
 public:
  struct put {
    using reply = void;
    int what;
  };
  store(disk* where, writes when) : disk_{where}, when_{when} {}
  void handle(put m, self& me) {
    memory_.push_back(m.what);
    if (when_ == writes::at_once)
      write();
    else
      me.start_timer(5ms);
  }
  void handle(coppice::timer_fired) { write(); }

 private:
  void write() {
    disk_->insert(memory_.begin(), memory_.end());
    memory_.clear();
  }
  disk* disk_;
  writes when_;
  std::vector<int> memory_;
};

// Puts numbers into the store, and notes which of them were confirmed. After a failure it waits for a new address.
// coppice-lint: allow pointer-parameter: both variables outlive the world that it runs in
task<> client(self& me, ref<store> at, std::set<int>* confirmed, bool* done) {
  for (int n = 0; n < 20; ++n) {
    const result<void> answer = co_await at.call<store::put>(n).within(1s);
    if (answer)
      confirmed->insert(n);
    else
      at = co_await me.receive<ref<store>>();
  }
  *done = true;
}

// One world: a store on one machine, a client on another, and a power cut at a moment of the seed's choice.
void nothing_confirmed_is_lost(sim::world& w, writes when) {
  disk on_disk;
  std::set<int> confirmed;
  bool done = false;
  sim::node& here = w.add_node("client");
  sim::node& there = w.add_node("store");
  const pid asking = here.rt().spawn(client, there.rt().spawn<store>(&on_disk, when), &confirmed, &done);

  w.run_for(w.chance().between(0ms, 60ms));
  there.crash();
  w.run_for(w.chance().between(0ms, 2s));
  there.restart();
  here.rt().send(asking, there.rt().spawn<store>(&on_disk, when));

  sim::require(w.run_until([&] { return done; }), "the client hangs");
  for (const int n : confirmed) sim::require(on_disk.contains(n), "a confirmed number was lost", {"store"});
}

}  // namespace

int main() {
  const std::string good =
      sim::explore({.name = "a store that writes at once", .seeds = 200, .replay = "example_04_simulation"},
                   [](sim::world& w) { nothing_confirmed_is_lost(w, writes::at_once); });
  std::cout << "writes at once: " << (good.empty() ? "holds for all seeds" : good) << '\n';

  // The report names the seed, and the command that replays it; which seed it is depends on the version of the library.
  const std::string bad =
      sim::explore({.name = "a store that writes later", .seeds = 200, .replay = "example_04_simulation"},
                   [](sim::world& w) { nothing_confirmed_is_lost(w, writes::later); });
  const bool found = bad.find("a confirmed number was lost") != std::string::npos;
  std::cout << "writes later: " << (found ? "a seed was found that loses a confirmed number" : "not found out") << '\n';
}
