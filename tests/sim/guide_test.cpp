// The code of docs/guide/simulation.md and os-processes.md, which quote it.
#include <gtest/gtest.h>

#include <csignal>
#include <iostream>
#include <string>

#include <coppice/env/environment_wrapper.hpp>
#include <coppice/env/os_processes.hpp>
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

void shows_what_happened() {
  sim::world w{7};
  w.keep_trace();
  runtime& rt = w.add_node("store").rt();
  const pid writer = rt.spawn({.name = "writer"}, worker).value();
  rt.kill(writer);
  w.run();
  for (const sim::trace_event& e : w.last_events_of("writer", 50)) std::cout << to_string(e) << '\n';
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

// coppice-lint: allow pointer-parameter: the test waits for its end
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

// ---- os-processes.md

struct printed {
  std::string text;
};
struct program_ended {
  os_exit how;
};

os_process_events tell(runtime* rt, pid whom) {
  os_process_events events;
  events.output = [=](os_stream, std::string_view bytes) { rt->send(whom, printed{std::string{bytes}}); };
  events.ended = [=](const os_exit& how) { rt->send(whom, program_ended{how}); };
  return events;
}

// coppice-lint: allow pointer-parameter: all of it outlives the world that it runs in
task<> keeper(self& me, runtime* rt, os_processes* programs, std::string* log) {
  os_command command{.program = "converter", .arguments = {"--fast"}};
  result<std::unique_ptr<os_process>> started = programs->spawn(command, tell(rt, me.id()));
  if (!started) co_await me.exit(exit_reason::error(started.error().to_string()));
  const std::unique_ptr<os_process> program = *std::move(started);

  std::string text;
  while (text.find("ready\n") == std::string::npos) {
    const auto news = co_await me.receive<printed, program_ended>();
    if (const auto* early = std::get_if<program_ended>(&news))
      co_await me.exit(exit_reason::error("the converter is not ready: " + to_string(early->how)));
    text += std::get<printed>(news).text;
  }
  *log += "it is ready; ";

  (void)program->signal(SIGTERM);  // ask,
  const auto in_time = co_await me.receive<program_ended>(5s);
  if (const auto* ended = std::get_if<program_ended>(&in_time)) {
    *log += to_string(ended->how);
    co_return;
  }
  (void)program->signal_group(SIGKILL);  // and then insist, with all that it has started
  const program_ended killed = co_await me.receive<program_ended>();
  *log += to_string(killed.how);
}

class converter final : public sim::os_program {
  void start(sim::os_program_self& me) override {
    me.after(2s, [&me] { me.print("ready\n"); });
  }
  void signalled(sim::os_program_self& me, int number) override {
    if (number == SIGTERM) return me.after(8s, [&me] { me.exit(0); });  // it takes its time
    os_program::signalled(me, number);
  }
};

void a_slow_end() {
  std::string log;
  sim::world w{1};
  sim::node& n = w.add_node();
  n.install("converter", [](const os_command&) { return std::make_unique<converter>(); });
  n.rt().spawn(keeper, &n.rt(), &n.env().os_processes(), &log);
  w.run();
  sim::require(log == "it is ready; signal 9", log);
}

TEST(guide_simulation, holds) {
  with_one_part_replaced();
  a_day();
  tries_it();
  shows_what_happened();
}

TEST(guide_os_processes, holds) { a_slow_end(); }

}  // namespace coppice::guide
