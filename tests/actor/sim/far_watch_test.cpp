// Actors of two nodes that watch and ask each other, over a network that fails and nodes that crash: each watch is
// answered once, with the right cause, and each question has an answer.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include <coppice/actor/actor.hpp>

#include "seeds.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace std::chrono_literals;

constexpr std::uint64_t seed_count = 600;

enum class order : std::uint8_t { watch, unwatch, ask, send, fail, finish, nothing };
struct command {
  order what = order::nothing;
  pid whom{};
};
struct note {
  pid from{};
  std::uint64_t number = 0;
};
struct question {
  using reply = int;
  bool fails = false;
};

struct person {
  std::map<pid, time_point> watching;
  std::set<pid> heard_end;
  std::map<pid, std::uint64_t> sent;
  std::map<pid, std::uint64_t> seen;
  std::set<std::uint64_t> questions;
};

struct town {
  explicit town(sim::world& w) : world{w}, dice{w.chance()} {}
  sim::world& world;
  sim::dice& dice;
  std::map<pid, person> people;
  std::map<pid, exit_reason> ended;
  std::map<std::pair<node_id, node_id>, time_point> lost;  // by whom, whom: the last time
  std::set<node_id> crashed;
  std::uint64_t numbers = 0;
  std::uint64_t of_cause[3] = {0, 0, 0};
  std::string complaint;
  void check(bool holds, const std::string& what) {
    if (!holds && complaint.empty()) complaint = what;
  }
  [[nodiscard]] bool is_gone(pid who) {
    sim::node* n = world.find(who.node());
    return n == nullptr || !n->up() || !n->rt().alive(who);
  }
};

class citizen {
 public:
  using protocol = coppice::protocol<command, note, question>;
  explicit citizen(town* t) : town_{t} {}

  void handle(command c, context& me) {
    person& mine = town_->people[me.id()];
    switch (c.what) {
      case order::watch:
        if (c.whom != me.id()) mine.watching.try_emplace(c.whom, town_->world.now());
        mine.heard_end.erase(c.whom);
        return me.watch(c.whom);
      case order::unwatch: mine.watching.erase(c.whom); return me.unwatch(c.whom);
      case order::ask: return ask(c.whom, me);
      case order::send: return me.send(c.whom, note{me.id(), ++mine.sent[c.whom]});
      case order::fail: throw std::runtime_error{"out of luck"};
      case order::finish: throw exit_with{exit_reason::shutdown("enough")};
      case order::nothing: return;
    }
  }
  void handle(note m, context& me) {
    person& mine = town_->people[me.id()];
    town_->check(m.number > mine.seen[m.from], "mail out of order");
    town_->check(!mine.heard_end.contains(m.from), "mail from " + to_string(m.from) + " behind its end");
    mine.seen[m.from] = m.number;
  }
  static int handle(question q) {
    if (q.fails) throw std::runtime_error{"no answer"};
    return 1;
  }
  void handle(const terminated& e, context& me) {
    person& mine = town_->people[me.id()];
    using cause = terminated::cause;
    town_->check(mine.watching.erase(e.who) == 1, "an end that nobody watches");
    ++town_->of_cause[static_cast<std::size_t>(e.why)];
    if (e.why == cause::stopped) {
      mine.heard_end.insert(e.who);
      town_->check(town_->is_gone(e.who), "the end of one that lives");
      const auto how = town_->ended.find(e.who);
      town_->check(how == town_->ended.end() || how->second == e.reason, "an end with another reason");
    }
    if (e.why == cause::not_found) town_->check(town_->is_gone(e.who), "not found, and it lives");
    if (e.why == cause::node_gone) town_->check(e.who.node() != me.id().node(), "its own node is gone");
    if (town_->dice.chance(0.2)) throw std::runtime_error{"out of luck"};
  }

 private:
  void ask(pid whom, context& me) {
    const std::uint64_t number = ++town_->numbers;
    town_->people[me.id()].questions.insert(number);
    const auto f = me.call(actor_ref<citizen>{whom}
                               .call<question>(town_->dice.chance(0.2))
                               .within(town_->dice.chance(0.5) ? forever : town_->dice.between(0ns, 1s)));
    me.reenter_after(f, [t = town_, number](const result<int>&, context& them) {
      t->check(t->people[them.id()].questions.erase(number) == 1, "a question is answered twice");
    });
  }
  town* town_;
};

/// At a restart the questions of the old instance are forgotten.
struct instance : citizen {
  instance(context& me, town* t) : citizen{t} { t->people[me.id()].questions.clear(); }
};

task<> observer(self& me, town* t) {
  for (;;) {
    const auto event = co_await me.receive<process_ended, node_down>();
    if (const auto* e = std::get_if<process_ended>(&event)) {
      t->ended[e->who] = e->reason;
    } else {
      t->lost[{me.id().node(), std::get<node_down>(event).node}] = t->world.now();
    }
  }
}

class course {
 public:
  explicit course(sim::world& w) : world_{w}, town_{w} {}
  course(const course&) = delete;
  course& operator=(const course&) = delete;
  ~course() {
    for (sim::node& n : world_.nodes()) n.crash();
  }

  void play() {
    auto& quality = world_.net().quality;
    quality.lost_after = dice().between(2ms, 60ms);
    quality.retry_after = dice().between(500us, 5ms);
    if (dice().chance(0.5)) quality.loss = 0.1;
    if (dice().chance(0.5)) quality.reordering = 0.3;
    for (int i = 0; i < 2; ++i) {
      world_.add_node({}, {.processes = 1U << 10U, .level = log_level::off});
      begin(world_.nodes().back());
    }
    for (int phases = 40; phases > 0; --phases) {
      world_.run_for(dice().between(0ns, dice().chance(0.6) ? 2ms : 100ms));
      for (std::uint64_t n = dice().below(8); n > 0; --n) tell_one();
      if (dice().chance(0.3)) fault();
      sim::require(town_.complaint.empty(), town_.complaint);
    }
  }
  void end() {
    world_.heal();
    for (sim::node& n : world_.nodes()) {
      if (n.paused()) n.resume();
    }
    world_.run_for(1min);
    sim::require(town_.complaint.empty(), town_.complaint);
    for (auto& [who, p] : town_.people) {
      if (town_.is_gone(who)) continue;
      for (const auto& [whom, since] : p.watching) {
        sim::require(!town_.is_gone(whom), to_string(who) + " was not told of the end of " + to_string(whom));
        const auto lost = town_.lost.find({who.node(), whom.node()});
        sim::require(lost == town_.lost.end() || lost->second < since + 1ms,
                     to_string(who) + " was not told that the node of " + to_string(whom) + " is gone");
      }
      sim::require(p.questions.empty(), to_string(who) + " has no answer");
    }
  }
  [[nodiscard]] const town& what_happened() const { return town_; }

 private:
  [[nodiscard]] sim::dice& dice() { return town_.dice; }
  [[nodiscard]] pid someone() {
    return everybody_[everybody_.size() - 1 - dice().below(std::min<std::size_t>(everybody_.size(), 12))];
  }
  void begin(sim::node& n) {
    const pid sees = n.rt().spawn(observer, &town_);
    n.rt().subscribe<process_ended>(sees);
    n.rt().subscribe<node_down>(sees);
    for (int i = 0; i < 4; ++i) {
      actor_options how{.guardian = always_restart()};
      if (dice().chance(0.3)) how.mailbox = mailbox{.by_priority = true};
      everybody_.push_back(spawn_actor(n.rt(), props<instance>(&town_).with(how)).id());
    }
  }
  void tell_one() {
    const pid who = someone();
    sim::node* n = world_.find(who.node());
    if (n == nullptr || !n->up()) return;
    constexpr std::array often{order::watch, order::watch, order::watch, order::unwatch, order::ask,
                               order::ask,   order::send,  order::send,  order::send,    order::fail};
    const order what = dice().chance(0.03) ? order::finish : often.at(dice().below(often.size()));
    n->rt().send(who, command{what, someone()});
  }
  void fault() {
    sim::node& a = world_.nodes()[dice().below(2)];
    sim::node& b = &a == &world_.nodes()[0] ? world_.nodes()[1] : world_.nodes()[0];
    switch (dice().below(7)) {
      case 0: return world_.partition(a, b);
      case 1: return world_.partition_one_way(a, b);
      case 2:
      case 3: return world_.heal();
      case 4:
        if (a.up()) a.paused() ? a.resume() : a.pause();
        return;
      case 5:
        if (a.up()) {
          town_.crashed.insert(a.id());
          return a.crash();
        }
        [[fallthrough]];
      default:
        if (a.up()) return a.rt().kill(someone());
        a.restart();
        begin(a);
    }
  }

  sim::world& world_;
  town town_;
  std::vector<pid> everybody_;
};

void tell_of_each_end_once(std::uint64_t first) {
  std::array<std::uint64_t, 3> of_cause{};
  const auto play = [&](sim::world& w) {
    course one{w};
    one.play();
    one.end();
    for (std::size_t i = 0; i < 3; ++i) of_cause.at(i) += one.what_happened().of_cause[i];
  };
  seeds::hold(seed_count, play, first);
  if (!seeds::all_of(seed_count)) return;
  for (const std::uint64_t n : of_cause) EXPECT_GT(n, 0U);
}

TEST(far_watch, tells_of_each_end_once) { tell_of_each_end_once(1); }
TEST(far_watch, tells_of_each_end_once_more) { tell_of_each_end_once(10'001); }

}  // namespace
