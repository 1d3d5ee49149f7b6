// Programs of a simulated node: what real ones promise too, and what only the simulation can show.
#include <gtest/gtest.h>
#include <os_process_cases.hpp>

#include <csignal>
#include <system_error>

#include <coppice/sim/explore.hpp>

namespace {

using namespace coppice;
using namespace coppice::os_process_cases;
using namespace std::chrono_literals;
using sim::os_program;
using sim::os_program_self;

// ---- the programs of the cases

/// Does one thing when it starts.
class does final : public os_program {
 public:
  explicit does(std::function<void(os_program_self&)> what) : what_{std::move(what)} {}
  void start(os_program_self& me) override { what_(me); }

 private:
  std::function<void(os_program_self&)> what_;
};

class cat final : public os_program {
  void start(os_program_self& /*me*/) override {}
  void input(os_program_self& me, std::string_view bytes) override { me.print(bytes); }
  void input_closed(os_program_self& me) override { me.exit(0); }
};

class polite final : public os_program {
  void start(os_program_self& me) override { me.print("ready\n"); }
  void signalled(os_program_self& me, int number) override {
    if (number != SIGTERM) return os_program::signalled(me, number);
    me.print("bye\n");
    me.exit(7);
  }
};

class stubborn final : public os_program {
  void start(os_program_self& me) override { me.print("ready\n"); }
  void signalled(os_program_self& /*me*/, int /*number*/) override {}
};

class ticks final : public os_program {
  void start(os_program_self& me) override {
    me.print("ready\n");
    tick(me);
  }
  static void tick(os_program_self& me) {
    me.print("tick\n");
    me.after(1ms, [&me] { tick(me); });
  }
};

void install_all(sim::node& n) {
  const auto install = [&](const std::string& name, std::function<void(os_program_self&)> what) {
    n.install(name, [what](const os_command&) { return std::make_unique<does>(what); });
  };
  const auto number = [](const os_program_self& me) { return std::stoi(me.command().arguments.at(0)); };
  install("exits", [=](os_program_self& me) { me.exit(number(me)); });
  install("dies", [=](os_program_self& me) { me.end({.signal = number(me)}); });
  install("says", [](os_program_self& me) {
    me.print(me.command().arguments.at(0) + "\n");
    me.print("error " + me.command().arguments.at(0) + "\n", os_stream::error);
    me.exit(0);
  });
  install("floods", [=](os_program_self& me) {
    me.print(std::string(static_cast<std::size_t>(number(me)), 'x'));
    me.exit(0);
  });
  install("deaf", [](os_program_self& me) {
    me.close_input();
    me.print("ready\n");
  });
  install("parent", [](os_program_self& me) {
    me.fork(std::make_unique<stubborn>());
    me.exit(0);
  });
  n.install("cat", [](const os_command&) { return std::make_unique<cat>(); });
  n.install("polite", [](const os_command&) { return std::make_unique<polite>(); });
  n.install("stubborn", [](const os_command&) { return std::make_unique<stubborn>(); });
  n.install("ticks", [](const os_command&) { return std::make_unique<ticks>(); });
}

class simulated_stage final : public stage {
 public:
  explicit simulated_stage(std::uint64_t seed) : world_{seed} { install_all(node_); }
  os_processes& processes() override { return node_.env().os_processes(); }
  os_command command(const std::string& name, std::vector<std::string> arguments) override {
    return {.program = name, .arguments = std::move(arguments)};
  }
  void wait(recorder& of, const std::function<bool(const report&)>& until) override {
    EXPECT_TRUE(world_.run_until([&] { return until(of.now()); }));
  }
  std::string leftovers() override { return world_.run() ? "" : "something goes on for ever"; }

 private:
  sim::world world_;
  sim::node& node_ = world_.add_node();
};

std::vector<stage_maker> seeds() {
  std::vector<stage_maker> all;
  for (std::uint64_t seed = 1; seed <= 5; ++seed)
    all.push_back({"seed_" + std::to_string(seed), [seed] { return std::make_unique<simulated_stage>(seed); }});
  return all;
}
INSTANTIATE_TEST_SUITE_P(simulated, os_process_case, testing::ValuesIn(seeds()));

// ---- time, faults and the seed

class slow final : public os_program {
  void start(os_program_self& me) override {
    me.after(10s, [&me] { me.print("ready\n"); });
    me.after(60s, [&me] { me.exit(0); });
  }
};

struct one_node {
  explicit one_node(std::uint64_t seed = 1) : w{seed} {
    install_all(n);
    n.install("slow", [](const os_command&) { return std::make_unique<slow>(); });
  }
  [[nodiscard]] std::unique_ptr<os_process> start(const os_command& c) {
    auto p = n.env().os_processes().spawn(c, all.events());
    if (!p) ADD_FAILURE() << p.error();
    return p ? *std::move(p) : nullptr;
  }
  recorder all;
  sim::world w;
  sim::node& n = w.add_node();
};

TEST(simulated_os_process, starts_slowly_in_virtual_time) {
  one_node on;
  const auto p = on.start({.program = "slow"});
  on.w.run_for(9s);
  EXPECT_EQ(on.all.now().output, "");
  on.w.run_for(2s);
  EXPECT_EQ(on.all.now().output, "ready\n");
  EXPECT_TRUE(on.w.run());
  EXPECT_EQ(on.all.now().ends, 1);
}

TEST(simulated_os_process, follows_the_clock_of_its_node) {
  one_node on;
  on.n.set_clock_rate(2);
  const auto p = on.start({.program = "slow"});
  on.w.run_for(6s);
  EXPECT_EQ(on.all.now().output, "ready\n");
  on.n.suspend(1h);
  on.w.run_for(1h);
  EXPECT_EQ(on.all.now().ends, 0);
  on.w.run_for(25s);
  EXPECT_EQ(on.all.now().ends, 1);
}

TEST(simulated_os_process, stands_still_while_its_node_is_paused) {
  one_node on;
  const auto p = on.start({.program = "says", .arguments = {"x"}});
  on.n.pause();
  on.w.run_for(1h);
  EXPECT_EQ(on.all.now().bytes, 0U);
  on.n.resume();
  EXPECT_TRUE(on.w.run());
  EXPECT_EQ(on.all.now().output, "x\n");
}

TEST(simulated_os_process, ends_with_the_crash_of_its_node_and_nothing_is_reported) {
  one_node on;
  const auto p = on.start({.program = "ticks"});
  on.w.run_for(10ms);
  const std::size_t before = on.all.now().bytes;
  EXPECT_GT(before, 20U);
  on.n.crash();
  on.w.run_for(1s);
  EXPECT_EQ(on.all.now().bytes, before);
  EXPECT_EQ(on.all.now().ends, 0);
  EXPECT_EQ(code_of(p->signal(sigkill)), errc::exited);
  EXPECT_TRUE(p->signal_group(sigkill)) << "nobody is left in it";
}

TEST(simulated_os_process, what_is_installed_stays_when_the_node_starts_again) {
  one_node on;
  const auto p = on.start({.program = "ticks"});
  on.n.restart();
  const auto q = on.start({.program = "says", .arguments = {"again"}});
  EXPECT_TRUE(on.w.run());
  EXPECT_EQ(on.all.now().output, "again\n");
}

TEST(simulated_os_process, fails_to_start_with_the_error_of_the_system_that_the_test_chooses) {
  one_node on;
  on.n.install("forbidden", [](const os_command&) -> std::unique_ptr<os_program> {
    throw std::system_error{std::make_error_code(std::errc::permission_denied)};
  });
  const auto p = on.n.env().os_processes().spawn({.program = "forbidden"}, {});
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().to_string(), "start_failed: cannot start 'forbidden': Permission denied");
}

TEST(simulated_os_process, fails_to_start_as_often_as_the_world_says) {
  one_node on;
  on.w.fail_at("os.spawn", 0.5);
  int failed = 0;
  for (int i = 0; i < 200; ++i) {
    const auto p = on.n.env().os_processes().spawn({.program = "exits", .arguments = {"0"}}, {});
    if (p) continue;
    EXPECT_EQ(code_of(p.error()), errc::capacity);
    ++failed;
  }
  EXPECT_GT(failed, 60);
  EXPECT_LT(failed, 140);
}

TEST(simulated_os_process, output_arrives_in_pieces_for_some_seeds) {
  int pieces = 0;
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    one_node on{seed};
    os_process_events events;
    std::string text;
    int calls = 0;
    events.output = [&](os_stream s, std::string_view bytes) {
      if (s != os_stream::output) return;
      text += bytes;
      ++calls;
    };
    const auto p = on.n.env().os_processes().spawn({.program = "says", .arguments = {"hello"}}, std::move(events));
    EXPECT_TRUE(on.w.run());
    EXPECT_EQ(text, "hello\n");
    if (calls > 1) ++pieces;
  }
  EXPECT_GT(pieces, 0);
  EXPECT_LT(pieces, 49);
}

TEST(simulated_os_process, the_core_flag_is_reported) {
  one_node on;
  on.n.install("crashes", [](const os_command&) {
    return std::make_unique<does>([](os_program_self& me) { me.end({.signal = SIGSEGV, .core = true}); });
  });
  const auto p = on.start({.program = "crashes"});
  EXPECT_TRUE(on.w.run());
  EXPECT_EQ(to_string(on.all.now().how), "signal 11, core dumped");
}

TEST(simulated_os_process, does_nothing_any_more_after_its_end) {
  one_node on;
  on.n.install("restless", [](const os_command&) {
    return std::make_unique<does>([](os_program_self& me) {
      me.after(1s, [&me] { me.print("too late\n"); });
      me.exit(0);
      me.exit(1);
      me.print("too late\n");
      me.after(1s, [&me] { me.print("too late\n"); });
      me.fork(std::make_unique<ticks>());
    });
  });
  const auto p = on.start({.program = "restless"});
  const time_point before = on.w.now();
  EXPECT_TRUE(on.w.run());
  EXPECT_LT(on.w.now() - before, 1s);
  EXPECT_EQ(on.all.now().output, "");
  EXPECT_EQ(on.all.now().how.code, 0);
  EXPECT_EQ(on.all.now().ends, 1);
}

TEST(simulated_os_process, the_end_of_input_is_told_once) {
  struct listener final : os_program {
    void start(os_program_self& /*me*/) override {}
    void input_closed(os_program_self& me) override { me.print("closed\n"); }
  };
  one_node on;
  on.n.install("listener", [](const os_command&) { return std::make_unique<listener>(); });
  for (const os_stdio kind : {os_stdio::pipe, os_stdio::null}) {
    const auto p = on.start({.program = "listener", .input = kind});
    p->close_input();
    p->close_input();
    EXPECT_TRUE(on.w.run());
  }
  EXPECT_EQ(on.all.now().output, "closed\nclosed\n");
}

TEST(simulated_os_process, two_who_answer_each_other_do_not_keep_time_from_moving) {
  one_node on;
  std::unique_ptr<os_process> p;
  os_process_events events;
  events.output = [&](os_stream, std::string_view bytes) { (void)p->write_input(std::string{bytes}); };
  p = *on.n.env().os_processes().spawn({.program = "cat", .input = os_stdio::pipe}, std::move(events));
  EXPECT_TRUE(p->write_input("ping"));
  on.w.run_for(1ms);
  p.reset();
}

TEST(simulated_os_process, a_report_may_crash_the_node) {
  one_node on;
  os_process_events events;
  events.output = [&](os_stream, std::string_view) { on.n.crash(); };
  const auto p = on.n.env().os_processes().spawn({.program = "ticks"}, std::move(events));
  on.w.run_for(1s);
  EXPECT_FALSE(on.n.up());
}

/// Crashes its node when it is called, and notes whether that has destroyed it.
struct crashes_node {
  sim::node* n;
  bool* called;
  std::shared_ptr<int> mine = std::make_shared<int>(7);
  void operator()(os_stream, std::string_view) const { crash(); }
  void operator()() const { crash(); }
  void operator()(const os_exit&) const { crash(); }
  void crash() const {
    const std::weak_ptr<int> still{mine};
    bool* into = called;
    n->crash();
    *into = !still.expired();
  }
};

TEST(simulated_os_process, a_report_that_crashes_the_node_is_not_destroyed_while_it_runs) {
  for (int which = 0; which < 3; ++which) {
    one_node on;
    bool survived = false;
    crashes_node crashes{&on.n, &survived};
    const std::weak_ptr<int> closure{crashes.mine};
    os_process_events events;
    if (which == 0) events.output = std::move(crashes);
    if (which == 1) events.output_closed = std::move(crashes);
    if (which == 2) events.ended = std::move(crashes);
    const auto p = on.n.env().os_processes().spawn({.program = "says", .arguments = {"hello"}}, std::move(events));
    EXPECT_TRUE(on.w.run());
    EXPECT_FALSE(on.n.up());
    EXPECT_TRUE(survived) << which;
    EXPECT_TRUE(closure.expired()) << "it is destroyed when it has returned, " << which;
  }
}

TEST(simulated_os_process, the_same_seed_leaves_the_same_trace) {
  const auto trace_of = [](std::uint64_t seed) {
    one_node on{seed};
    std::vector<std::unique_ptr<os_process>> all;
    for (const char* name : {"ticks", "polite", "stubborn", "parent", "slow", "cat"})
      all.push_back(on.start({.program = name, .input = os_stdio::pipe}));
    for (int i = 0; i < 40; ++i) {
      const auto& p = all[on.w.chance().below(all.size())];
      if (on.w.chance().chance(0.5))
        (void)p->write_input("hello");
      else
        (void)p->signal(on.w.chance().chance(0.1) ? sigkill : sigterm);
      on.w.run_for(on.w.chance().between(0ms, 5ms));
    }
    return std::pair{on.w.trace_hash(), on.all.now().output};
  };
  std::set<std::uint64_t> different;
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    const auto first = trace_of(seed);
    EXPECT_EQ(first, trace_of(seed)) << "seed " << seed;
    different.insert(first.first);
  }
  EXPECT_EQ(different.size(), 49U);
}

}  // namespace
