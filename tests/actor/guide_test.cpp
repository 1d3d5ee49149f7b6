// The code of docs/guide/actors.md, which quotes it.
#include <gtest/gtest.h>

#include <coppice/coppice.hpp>
#include <coppice/sim/explore.hpp>

using namespace std::chrono_literals;

namespace coppice {

using namespace actor;

namespace {

struct counter {
  struct bump {
    using reply = int;
    int by = 1;
  };
  struct reset {};
  using protocol = coppice::protocol<bump, reset>;

  int handle(bump m) { return value += m.by; }
  void handle(reset, context& me) {
    me.log(log_level::info, "back to nothing");
    value = 0;
  }
  int value = 0;
};

void first_steps(runtime& rt) {
  const actor_ref<counter> counters = spawn_actor(rt, props<counter>());
  rt.cast<counter::reset>(counters);
  const result<int> now = rt.call(counters.call<counter::bump>(3));
  EXPECT_EQ(now, 3);
  stop_actor(rt, counters);
}

struct io_error : std::runtime_error {
  using runtime_error::runtime_error;
};

struct reader {
  struct read {
    using reply = std::string;
    std::string file;
  };
  using protocol = coppice::protocol<read>;
  static std::string handle(const read& m) {
    if (m.file.empty()) throw io_error{"no such file"};
    return "text of " + m.file;
  }
};

// ---- strategies

actor_options careful() {
  return {.strategy = one_for_one({
              .limit = {.restarts = 3, .within = 1min},
              .decide = decide_by(directive::restart,                          // whatever else it is
                                  on<io_error>(directive::resume),             // tried again by who asked
                                  on<std::logic_error>(directive::escalate)),  // ours to mend
          })};
}

/// Decides by what it knows.
struct librarian {
  using protocol = coppice::protocol<>;
  static directive decide(const child_failure& f) { return f.restarts < 2 ? directive::restart : directive::stop; }
};

actor_strategy patient() {
  return custom_strategy([](const child_failure& f) {
    return judgement{.what = directive::restart, .after = 10ms * (f.name == "slow" ? 10 : 1)};
  });
}

// ---- the seam with supervisors

supervisor_spec library() {
  return {.children = {
              child<any_actor>(props<librarian>().with(careful())).with({.name = "librarian", .shutdown = 10s}),
              child<any_actor>(props<reader>()),
          }};
}

struct branch {
  using protocol = coppice::protocol<>;
  void handle(started, context& me) {
    const auto below = me.spawn(child<supervisor>(library()));
    if (!below) throw std::runtime_error{below.error().to_string()};
    tree = *below;
  }
  pid tree;
};

// ---- names

struct shop {
  struct hire {
    std::string name;
  };
  struct spilled {
    std::string text;
  };
  using protocol = coppice::protocol<hire, spilled>;
  void handle(const hire& m, context& me) {
    const auto made = me.spawn({.name = m.name}, props<reader>());  // `<path of the shop>/<name>`
    const pid who = made ? made->id() : made.error().running;       // or who has the name already
    me.watch(who);
    ++hired;
  }
  void handle(const spilled&) {}
  void handle(const terminated& gone, context& me) {
    me.log(log_level::info, "somebody has left", {{"why", gone.reason.to_string()}});
    --hired;
  }
  int hired = 0;
};

props<shop> told_of_every_end() { return props<shop>().with({.watch_children = true}); }

// ---- futures

struct desk {
  struct ask {
    using reply = std::string;
    std::string file;
  };
  struct ask_all {
    using reply = std::string;
    std::vector<std::string> files;
  };
  using protocol = coppice::protocol<ask, ask_all, std::string, error>;
  explicit desk(actor_ref<reader> who) : reads{who} {}

  void handle(const ask& m, context& me) {
    const future<std::string> text = me.call(reads.call<reader::read>(m.file).within(2s));
    me.reenter_after(text, [this](const result<std::string>& r, context& again) {
      ++answered;  // between two messages, as in any handler
      again.reply(r ? *r : "can't say: " + r.error().to_string());
    });
  }
  void handle(const ask_all& m, context& me) {
    struct sheet {
      reply_to<std::string> to;
      std::size_t missing;
      std::string text;
    };
    const auto open = std::make_shared<sheet>(me.defer<std::string>(), m.files.size(), "");
    for (const std::string& file : m.files)
      me.reenter_after(me.call(reads.call<reader::read>(file).within(2s)),
                       [open](const result<std::string>& r, context&) {
                         open->text += r ? *r : "?";
                         if (--open->missing == 0) open->to.reply(open->text);
                       });
  }
  void handle(const std::string&) {}
  void handle(const error&) {}

  actor_ref<reader> reads;
  int answered = 0;
};

// ---- stash, behaviours, time

struct door {
  struct knock {
    using reply = bool;
  };
  struct open {};
  using protocol = coppice::protocol<knock, open>;

  static void handle(knock m, context& me) { me.stash(m); }  // until somebody opens
  static void handle(open, context& me) {
    me.become(behaviour{
        [](knock, context& in) { in.reply(true); }, [](any_message, context&) {},  // nothing else is of interest
    });
    me.unstash_all();
  }
};

struct session {
  struct tick {
    static constexpr bool keeps_receive_timeout = true;  // no sign of life
  };
  struct input {
    std::string text;
  };
  using protocol = coppice::protocol<tick, input>;
  void handle(started, context& me) {
    beat = me.every(1s, tick{});
    me.set_receive_timeout(30s);
  }
  void handle(tick) { ++ticks; }
  void handle(const input&, context& me) { me.cancel(beat); }
  void handle(receive_timeout, context& me) { me.stop(); }  // nobody is there any more
  actor_timer beat{};
  int ticks = 0;
};

// ---- mailboxes, routers, middleware

props<session> limited() {
  return props<session>().with({.mailbox = mailbox{.capacity = 1000, .when_full = when_full::drop_oldest}});
}

void share(runtime& rt) {
  const auto readers = spawn_actor(rt, pool_of(props<reader>(), {.how = routing::round_robin, .size = 4}));
  const result<std::string> text = rt.call(readers.call<reader::read>("a.txt"));
  EXPECT_EQ(text, "text of a.txt");
}

props<reader> measured() {
  return props<reader>().with({.on_receive = {[](context& me, const message_view& m, const auto& next) {
                                 const time_point begin = me.now();
                                 next();
                                 me.log(log_level::debug, m.type(),
                                        {{"ns", std::to_string((me.now() - begin).count())}});
                               }}});
}

// ---- a test of an actor

TEST(shop, hires_again_who_has_left) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  const auto made = spawn_actor(rt, {.name = "shop"}, props<shop>());
  ASSERT_TRUE(made);
  rt.cast<shop::hire>(*made, "anna");
  w.settle();
  const pid first = rt.where("shop/anna");
  rt.kill(first);
  w.settle();
  EXPECT_FALSE(rt.where("shop/anna"));
  rt.cast<shop::hire>(*made, "anna");
  w.settle();
  EXPECT_NE(rt.where("shop/anna"), first);
}
TEST(shop, may_be_told_of_every_end) {
  EXPECT_TRUE(told_of_every_end().settings()->watch_children);
  EXPECT_FALSE(props<shop>().settings()->watch_children);
}

// ---- and that all of the above does what the page says

TEST(actor_guide, first_steps) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  first_steps(rt);
  share(rt);
}

TEST(actor_guide, futures_doors_and_sessions) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  const auto reads = spawn_actor(rt, measured());
  const auto front = spawn_actor(rt, props<desk>(reads));
  EXPECT_EQ(rt.call(front.call<desk::ask>("b.txt")), "text of b.txt");
  const auto failed = rt.call(front.call<desk::ask>(""));
  ASSERT_TRUE(failed);
  EXPECT_TRUE(failed->starts_with("can't say: no_reply")) << *failed;

  EXPECT_EQ(rt.call(front.call<desk::ask_all>(std::vector<std::string>{"a", "", "b"})), "text of a?text of b");

  const auto gate = spawn_actor(rt, props<door>());
  rt.cast<door::open>(gate);
  EXPECT_EQ(rt.call(gate.call<door::knock>()), true);

  const auto one = spawn_actor(rt, limited());
  w.run_for(2s);
  rt.cast<session::input>(one, "x");
  w.run_for(29s);
  EXPECT_TRUE(rt.alive(one.id()));
  w.run_for(2s);
  EXPECT_FALSE(rt.alive(one.id()));
}

TEST(actor_guide, the_tree_shows_actors_and_supervisors) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  const auto top = spawn_actor(rt, props<branch>().with({.strategy = patient()}));
  w.settle();
  const std::string tree = draw(look_at_tree(rt, top.id()));
  EXPECT_NE(tree.find("supervisor"), std::string::npos) << tree;
  EXPECT_NE(tree.find("librarian"), std::string::npos) << tree;
  EXPECT_TRUE(rt.where("librarian"));
}

}  // namespace
}  // namespace coppice
