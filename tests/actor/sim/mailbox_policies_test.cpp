// Limited mailboxes: a poison pill and the notice of an end come behind the mail that was sent before them, whether
// that mail waits in the mailbox or for room in it.
#include <gtest/gtest.h>

#include <coppice/actor/actor.hpp>

#include "seeds.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace std::chrono_literals;

constexpr std::uint64_t seed_count = 200;

struct count {
  int number = 0;
  int level = 4;
  [[nodiscard]] int priority() const { return level; }
};
struct talk_to {
  pid whom{};
  int letters = 0;
  bool poisons = false;  // else it ends itself
};
struct seen {
  int letters = 0;
  int ends = 0;
  bool in_order = true;
  bool ended_last = true;
};

class listener {
 public:
  using protocol = coppice::protocol<count, pid>;
  explicit listener(seen* s) : seen_{s} {}
  void handle(count m) {
    if (seen_->ends > 0) seen_->ended_last = false;
    if (m.number != ++seen_->letters) seen_->in_order = false;
  }
  static void handle(pid whom, context& me) { me.watch(whom); }
  void handle(const terminated&) { ++seen_->ends; }

 private:
  seen* seen_;
};

class talker {
 public:
  using protocol = coppice::protocol<talk_to>;
  static void handle(talk_to m, context& me) {
    for (int i = 1; i <= m.letters; ++i) {
      const count letter{.number = i, .level = m.poisons ? 4 : 0};
      i % 2 == 0 ? me.send(m.whom, letter) : me.cast<count>(actor_ref<listener>{m.whom}, letter);
    }
    m.poisons ? me.poison(m.whom) : me.stop();
  }
};

void play(sim::world& w, bool poisons) {
  runtime& rt = w.add_node("mailboxes", {.processes = 1U << 10U, .level = log_level::off}).rt();
  sim::dice& d = w.chance();
  seen s;
  actor::mailbox box{.capacity = 1 + d.below(3), .when_full = when_full::sender_waits, .waits_at_most = 1h};
  if (d.chance(0.3)) box = {.by_priority = true};
  const auto to = spawn_actor(rt, props<listener>(&s).with({.mailbox = box}));
  const auto from = spawn_actor(rt, props<talker>());
  if (d.chance(0.5)) w.run_for(1ms);  // else the mail comes before the receiver has begun
  if (!poisons) rt.cast<pid>(to, from.id());
  w.run_for(d.between(0ns, 1us));
  const int letters = static_cast<int>(1 + d.below(8));
  rt.cast<talk_to>(from, to.id(), letters, poisons);
  w.run_for(1s);
  sim::require(s.in_order && s.letters == letters,
               std::to_string(s.letters) + " of " + std::to_string(letters) + " letters were handled");
  sim::require(s.ended_last, "an end overtakes the mail");
  sim::require(s.ends == (poisons ? 0 : 1), "it was not told of the end");
  sim::require(rt.alive(to.id()) != poisons, "the pill has no effect, or something else has");
  sim::require(rt.counters().dead_letters == 0, "there are dead letters");
}

TEST(mailbox_policies, a_pill_comes_behind_the_mail) {
  seeds::hold(seed_count, [](sim::world& w) { play(w, true); });
}
TEST(mailbox_policies, an_end_comes_behind_the_mail) {
  seeds::hold(seed_count, [](sim::world& w) { play(w, false); });
}

}  // namespace
