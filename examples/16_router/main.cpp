// Two ways to share work: a pool whose workers take turns, and a group of shelves where the same key always comes to
// the same shelf.
#include <iostream>
#include <map>
#include <set>

#include <coppice/coppice.hpp>

namespace actor = coppice::actor;
using actor::context;
using coppice::pid;

namespace {

/// Says who has done it.
struct worker {
  struct job {
    using reply = pid;
  };
  using protocol = coppice::protocol<job>;
  static pid handle(job, context& me) { return me.id(); }
};

/// Says who keeps it.
struct shelf {
  struct put {
    using reply = pid;
    std::string book;
    [[nodiscard]] std::string_view routing_key() const { return book; }
  };
  using protocol = coppice::protocol<put>;
  static pid handle(const put&, context& me) { return me.id(); }
};

void try_pool(coppice::runtime& rt) {
  const auto pool = actor::spawn_actor(rt, actor::pool_of(actor::props<worker>(), {.size = 3}));
  std::map<pid, int> done;
  for (int i = 0; i < 9; ++i)
    if (const auto who = rt.call(pool.call<worker::job>())) ++done[*who];
  for (const auto& [who, jobs] : done) std::cout << "a worker has done " << jobs << " jobs\n";
}

using places = std::map<std::string, pid>;

places put_all(coppice::runtime& rt, actor::actor_ref<actor::router> shelves) {
  places where;
  for (int i = 0; i < 100; ++i) {
    const std::string book = "book " + std::to_string(i);
    if (const auto who = rt.call(shelves.call<shelf::put>(book))) where[book] = *who;
  }
  return where;
}

void try_group(coppice::runtime& rt) {
  std::vector<pid> all;
  for (int i = 0; i < 4; ++i) all.push_back(actor::spawn_actor(rt, actor::props<shelf>()).id());
  const auto shelves = actor::spawn_actor(rt, actor::group_of(all, {.how = actor::routing::consistent_hash}));

  const places first = put_all(rt, shelves);
  std::set<pid> used;
  for (const auto& [book, who] : first) used.insert(who);
  std::cout << first.size() << " books are on " << used.size() << " shelves\n";
  std::cout << "again: " << (put_all(rt, shelves) == first ? "all in their places" : "elsewhere") << '\n';

  rt.cast<actor::remove_routee>(shelves, all.front());
  bool stayed = true;
  for (const auto& [book, who] : put_all(rt, shelves)) {
    const pid before = first.at(book);
    if (before != all.front() && who != before) stayed = false;
  }
  std::cout << "without one: " << (stayed ? "only its own books have moved" : "others have moved, too") << '\n';
}

}  // namespace

int main() {
  coppice::runtime rt{{.level = coppice::log_level::off}};
  try_pool(rt);
  try_group(rt);
}
