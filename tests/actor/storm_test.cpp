// Whole trees of actors that fail at random, with every answer there is: whatever happens, in the end nobody is left
// suspended, orphaned or remembered after its end.
#include <thread>

#include "stage.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::theatre;

/// A process that is not an actor.
struct twig {
  using protocol = coppice::protocol<say>;
  twig(self& me, script* book, const std::string& name) { book->pids[name] = me.id(); }
  static void handle(const say& m) {
    if (m.text == "break") throw std::runtime_error{"broken"};
  }
};

class storm {
 public:
  explicit storm(std::uint64_t seed) : dice_{seed}, s_{seed} {
    plan("r", 0);
    actor_options how = options();
    how.guardian = one_for_one({.limit = unlimited, .decide = [this](const auto&) {
                                  return dice_.chance(0.5) ? directive::resume : directive::restart;
                                }});
    s_.root("r", how);
  }

  void blow(int rounds) {
    raging_ = true;
    for (int i = 0; i < rounds; ++i) {
      for (std::uint64_t n = 1 + dice_.below(5); n != 0; --n) strike(names_[dice_.below(names_.size())]);
      if (dice_.chance(0.3)) s_.settle();
      s_.pass(std::chrono::microseconds{dice_.below(2000)});
    }
    raging_ = false;
    s_.pass(1h);
  }
  /// Everybody who lives takes mail, has living children only, and a living parent.
  void check() {
    EXPECT_EQ(s_.end_of("r"), "lives");
    for (const std::string& name : names_) {
      if (!s_.book.pids.contains(name) || !s_.rt().alive(s_.who(name))) continue;
      bool answered = false;
      s_.act(name, [&](player&, context& me) {
        answered = true;
        for (const pid child : me.children()) EXPECT_TRUE(s_.rt().alive(child)) << name;
        EXPECT_TRUE(name == "r" || s_.rt().alive(me.parent())) << name;
      });
      EXPECT_TRUE(answered) << name << " is suspended";
      EXPECT_EQ(s_.rt().info(s_.who(name))->mailbox, 0U) << name;
    }
  }
  [[nodiscard]] std::size_t failures() const { return s_.events.size(); }

 private:
  void plan(const std::string& name, int depth) {
    names_.push_back(name);
    for (const char* hook : {" restarting", " stopping", " stopped"})
      s_.book.always[name + hook] = [this](player&, context&) { maybe_throw(0.1); };
    s_.book.always[name + " made"] = [this](player&, context&) { maybe_throw(0.05); };
    s_.book.always[name + " started"] = [this, name, depth](player& p, context& me) {
      maybe_throw(0.02);
      for (int i = 0; depth < 3 && i < 3; ++i) {
        const std::string below = name + std::to_string(i);
        const auto born = me.spawn({.name = below}, part(p.book(), below, options()));  // it may have been kept
        if (born) p.book().pids[below] = born->id();
      }
      const bool has_twig = p.book().pids.contains(name + "t") && s_.rt().alive(s_.who(name + "t"));
      if (!has_twig) (void)me.spawn(child<twig>(&p.book(), name + "t").with({.id = name + "t"}));
      maybe_throw(0.02);
    };
    for (int i = 0; depth < 3 && i < 3; ++i) plan(name + std::to_string(i), depth + 1);
  }
  actor_options options() {
    strategy_options how{.limit = unlimited, .decide = [this](const auto&) { return decide(); }};
    if (dice_.chance(0.3)) how.wait = backoff{.first = 1ms, .cap = 5ms};
    return {.strategy = dice_.chance(0.5) ? one_for_one(how) : all_for_one(how), .keep_children = dice_.chance(0.5)};
  }
  directive decide() {
    maybe_throw(0.05);
    const std::uint64_t n = dice_.below(100);
    return n < 40 ? directive::resume : n < 75 ? directive::restart : n < 97 ? directive::escalate : directive::stop;
  }
  void maybe_throw(double chance) {
    if (raging_ && dice_.chance(chance)) throw std::runtime_error{"storm"};
  }
  void strike(const std::string& name) {
    if (!s_.book.pids.contains(name)) return;
    if (name != "r" && dice_.chance(0.03)) return s_.rt().kill(s_.who(name));
    if (name != "r" && dice_.chance(0.03)) return stop_actor(s_.rt(), s_.who(name));
    if (name != "r" && dice_.chance(0.03)) return poison_actor(s_.rt(), s_.who(name));
    if (dice_.chance(0.05)) s_.stick(name, std::chrono::microseconds{dice_.below(3000)});
    if (dice_.chance(0.2) && s_.book.pids.contains(name + "t"))
      return s_.rt().send(s_.who(name + "t"), say{raging_ ? "break" : "mail"});
    s_.tell(name, "mail");
    s_.tell(name, [this](player&, context&) { maybe_throw(1); });
  }

  sim::dice dice_;
  stage s_;
  std::vector<std::string> names_;
  bool raging_ = false;
};

TEST(actor_storm, leaves_nobody_suspended_orphaned_or_remembered) {
  std::size_t failures = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    storm w{seed};
    w.blow(30);
    w.check();
    failures += w.failures();
    if (HasFailure()) return;
  }
  EXPECT_GT(failures, 2000U) << "there was a storm";
}

// ---- the same with threads

struct strain {
  using reply = int;
};
struct knock {
  bool hard = false;
};
struct branch {
  using protocol = coppice::protocol<strain, knock>;
  explicit branch(int d) : depth{d} {}
  void handle(started, context& me) const {
    for (int i = 0; depth > 0 && i < 3; ++i) me.spawn(props<branch>(depth - 1).with({.strategy = always_restart()}));
  }
  static int handle(strain) { return 7; }
  void handle(knock m, context& me) const {
    for (const pid child : me.children()) me.send(child, m);
    if (m.hard && me.random() % 2 == 0) throw std::runtime_error{"knocked"};
  }
  int depth;
};

TEST(actor_storm, on_threads_ends_in_trees_that_answer_and_stop) {
  runtime rt{{.workers = 4, .level = log_level::off}};
  std::vector<actor_ref<branch>> trees;
  for (int i = 0; i < 4; ++i)
    trees.push_back(spawn_actor(
        rt, props<branch>(3).with({.strategy = all_for_one({.limit = unlimited}), .guardian = always_restart()})));
  {
    std::vector<std::jthread> knocking;
    for (int i = 0; i < 2; ++i)
      knocking.emplace_back([&] {
        for (int n = 0; n < 200; ++n)
          for (const auto& t : trees) rt.cast<knock>(t, n % 3 == 0);
      });
  }
  for (const auto& t : trees) {
    EXPECT_EQ(rt.call(t.call<strain>().within(forever)), 7);
    const exit_reason end = rt.run(
        +[](self& me, pid who) -> task<> {
          me.monitor(who);
          stop_actor(me, who);
          const down d = co_await me.receive<down>();
          me.stop(d.reason);
        },
        t.id());
    EXPECT_EQ(end, exit_reason::normal());
  }
  // Nobody is left below them; who waited here for a thread may still be on the way out.
  while (!rt.snapshot().empty()) std::this_thread::yield();
}

}  // namespace
