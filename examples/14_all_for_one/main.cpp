// Three ledgers that have to agree. When one of them fails, what it knew is lost, so that the others must forget it as
// well: their parent restarts all of them together. They keep their addresses.
//
// In the simulation, because `settle` waits for all that follows from a message.
#include <iostream>

#include <coppice/coppice.hpp>
#include <coppice/sim/explore.hpp>

namespace actor = coppice::actor;
using actor::context;

namespace {

class ledger {
 public:
  struct enter {
    int amount;
  };
  struct total {
    using reply = int;
  };
  using protocol = coppice::protocol<enter, total>;

  void handle(enter m) {
    if (m.amount < 0) throw std::invalid_argument{"a negative amount"};
    total_ += m.amount;
  }
  [[nodiscard]] int handle(total) const { return total_; }

 private:
  int total_ = 0;
};

/// Gives each amount to all of its ledgers.
class office {
 public:
  using protocol = coppice::protocol<ledger::enter>;
  void handle(actor::started, context& me) {
    for (const char* name : {"north", "south", "west"})
      if (const auto made = me.spawn({.name = name}, actor::props<ledger>())) ledgers_.push_back(*made);
  }
  void handle(ledger::enter m, context& me) {
    for (const auto& each : ledgers_) me.cast<ledger::enter>(each, m);
  }

 private:
  std::vector<actor::actor_ref<ledger>> ledgers_;
};

void print_totals(coppice::runtime& rt) {
  for (const char* name : {"north", "south", "west"}) {
    const actor::actor_ref<ledger> one{rt.where(std::string{"office/"} + name)};
    const auto total = rt.call(one.call<ledger::total>());
    std::cout << "  " << name << ": " << (total ? std::to_string(*total) : total.error().to_string()) << '\n';
  }
}

}  // namespace

int main() {
  coppice::sim::world w{1};
  coppice::runtime& rt = w.add_node().rt();
  const auto made =
      actor::spawn_actor(rt, {.name = "office"}, actor::props<office>().with({.strategy = actor::all_for_one()}));
  if (!made) return 1;

  for (const int amount : {10, 20, 12}) rt.cast<ledger::enter>(*made, amount);
  w.settle();
  std::cout << "three amounts:\n";
  print_totals(rt);

  const actor::actor_ref<ledger> south{rt.where("office/south")};
  rt.cast<ledger::enter>(south, -1);
  w.settle();
  std::cout << "one has failed:\n";
  print_totals(rt);

  rt.cast<ledger::enter>(*made, 7);
  w.settle();
  std::cout << "and they go on:\n";
  print_totals(rt);
}
