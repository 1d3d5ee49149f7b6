#pragma once
/// What programs of the operating system promise, real or simulated: the same cases for both. `tests/platform` and
/// `tests/sim` provide the stage.
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <coppice/env/os_processes.hpp>

namespace coppice::os_process_cases {

/// What was reported of one program.
struct report {
  std::string output;
  std::string error;
  std::size_t bytes = 0;
  int ends = 0;
  int closes = 0;
  os_exit how{};
};

/// Collects what is reported on another thread. It must outlive the handle of the program.
class recorder {
 public:
  [[nodiscard]] os_process_events events() {
    os_process_events all;
    all.output = [this](os_stream s, std::string_view bytes) {
      change([&](report& r) {
        (s == os_stream::output ? r.output : r.error) += bytes;
        r.bytes += bytes.size();
      });
    };
    all.output_closed = [this] { change([](report& r) { ++r.closes; }); };
    all.ended = [this](const os_exit& how) {
      change([&](report& r) {
        ++r.ends;
        r.how = how;
      });
    };
    return all;
  }
  [[nodiscard]] report now() const {
    const std::scoped_lock lock{mutex_};
    return report_;
  }
  void change(const std::function<void(report&)>& by) {
    const std::scoped_lock lock{mutex_};
    by(report_);
    changed_.notify_all();
  }
  /// For real programs.
  void wait(const std::function<bool(const report&)>& until) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return until(report_); });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  report report_;
};

/// Runs the programs of the cases. A program prints `ready` when it is ready for signals and input.
class stage {
 public:
  virtual ~stage() = default;
  [[nodiscard]] virtual os_processes& processes() = 0;
  /// exits CODE | dies SIGNAL | says TEXT | floods BYTES | cat | polite | stubborn | deaf | ticks | parent
  [[nodiscard]] virtual os_command command(const std::string& name, std::vector<std::string> arguments = {}) = 0;
  virtual void wait(recorder& of, const std::function<bool(const report&)>& until) = 0;
  /// What programs have left behind that nobody has a handle of any more; empty: nothing.
  [[nodiscard]] virtual std::string leftovers() = 0;

  [[nodiscard]] std::unique_ptr<os_process> start(const os_command& c, recorder& into) {
    auto started = processes().spawn(c, into.events());
    if (started) return *std::move(started);
    ADD_FAILURE() << started.error();
    return nullptr;
  }
  void wait_for_end(recorder& of) {
    wait(of, [](const report& r) { return r.ends > 0; });
  }
  void wait_until_ready(recorder& of) {
    wait(of, [](const report& r) { return r.output.find("ready\n") != std::string::npos; });
  }
  /// Runs a program to its end.
  [[nodiscard]] report run(const os_command& c) {
    recorder all;
    const auto p = start(c, all);
    if (p == nullptr) return {};
    wait_for_end(all);
    return all.now();
  }
};

struct stage_maker {
  std::string name;
  std::function<std::unique_ptr<stage>()> make;
  friend void PrintTo(const stage_maker& m, std::ostream* out) { *out << m.name; }  // as the names of tests show it
};
class os_process_case : public testing::TestWithParam<stage_maker> {
 protected:
  std::unique_ptr<stage> on = GetParam().make();
};

constexpr int sigkill = 9;
constexpr int sigterm = 15;

inline errc code_of(const error& e) { return e.code().as<errc>().value_or(errc::ignored); }
inline errc code_of(const result<void>& r) { return r ? errc::ignored : code_of(r.error()); }

// ---- how programs end

TEST_P(os_process_case, exit_codes_are_reported) {
  for (const int code : {0, 1, 3, 255}) {
    const report r = on->run(on->command("exits", {std::to_string(code)}));
    EXPECT_EQ(r.how.code, code);
    EXPECT_EQ(r.how.signal, 0);
    EXPECT_EQ(r.how.ok(), code == 0);
    EXPECT_EQ(to_string(r.how), "exit code " + std::to_string(code));
  }
}

TEST_P(os_process_case, a_signal_that_ends_a_program_is_reported) {
  const report r = on->run(on->command("dies", {"15"}));
  EXPECT_EQ(r.how.signal, sigterm);
  EXPECT_FALSE(r.how.ok());
  EXPECT_EQ(to_string(r.how), "signal 15");
}

TEST_P(os_process_case, after_the_end_signals_and_input_are_refused) {
  recorder all;
  os_command c = on->command("exits", {"0"});
  c.input = os_stdio::pipe;
  const auto p = on->start(c, all);
  on->wait_for_end(all);
  EXPECT_EQ(code_of(p->signal(sigterm)), errc::exited);
  EXPECT_EQ(code_of(p->write_input("too late")), errc::exited);
  EXPECT_TRUE(p->signal_group(sigterm)) << "there may be others in the group";
}

TEST_P(os_process_case, an_end_is_reported_once) {
  recorder all;
  const auto p = on->start(on->command("polite"), all);
  on->wait_until_ready(all);
  for (int i = 0; i < 5; ++i) (void)p->signal(sigkill);
  on->wait_for_end(all);
  recorder later;
  const auto q = on->start(on->command("says", {"x"}), later);
  on->wait_for_end(later);
  EXPECT_EQ(all.now().ends, 1);
  EXPECT_EQ(all.now().how.signal, sigkill);
}

// ---- output and input

TEST_P(os_process_case, what_it_wrote_to_both_streams_is_reported_before_its_end) {
  for (int i = 0; i < 20; ++i) {
    recorder all;
    os_process_events events = all.events();
    std::string seen_at_end;
    events.ended = [&](const os_exit&) {
      seen_at_end = all.now().output + all.now().error;
      all.change([](report& r) { ++r.ends; });
    };
    const auto p = on->processes().spawn(on->command("says", {"hello"}), std::move(events));
    ASSERT_TRUE(p);
    on->wait_for_end(all);
    EXPECT_EQ(seen_at_end, "hello\nerror hello\n");
  }
}

TEST_P(os_process_case, output_larger_than_a_pipe_arrives_whole) {
  EXPECT_EQ(on->run(on->command("floods", {"1000000"})).bytes, 1'000'000U);
}

TEST_P(os_process_case, the_end_of_output_is_reported_once) {
  recorder all;
  const auto p = on->start(on->command("says", {"x"}), all);
  on->wait(all, [](const report& r) { return r.closes > 0 && r.ends > 0; });
  EXPECT_EQ(all.now().closes, 1);
}

TEST_P(os_process_case, output_that_is_not_a_pipe_is_not_reported) {
  os_command c = on->command("says", {"nobody hears it"});
  c.output = os_stdio::null;
  const report half = on->run(c);
  EXPECT_EQ(half.output, "");
  EXPECT_EQ(half.error, "error nobody hears it\n");
  c.error = os_stdio::null;
  const report none = on->run(c);
  EXPECT_EQ(none.bytes, 0U);
  EXPECT_EQ(none.closes, 0);
}

TEST_P(os_process_case, input_arrives_in_order_and_ends_when_it_is_closed) {
  recorder all;
  os_command c = on->command("cat");
  c.input = os_stdio::pipe;
  const auto p = on->start(c, all);
  std::string sent;
  for (int i = 0; i < 100; ++i) {
    const std::string line = std::to_string(i) + std::string(8000, 'x') + "\n";
    EXPECT_TRUE(p->write_input(line)) << i;
    sent += line;
  }
  p->close_input();
  EXPECT_EQ(code_of(p->write_input("too late")), errc::invalid);
  on->wait_for_end(all);
  EXPECT_EQ(all.now().output, sent);
  EXPECT_TRUE(all.now().how.ok());
}

TEST_P(os_process_case, without_a_pipe_input_is_refused_and_the_program_finds_none) {
  recorder all;
  const auto p = on->start(on->command("cat"), all);
  EXPECT_EQ(code_of(p->write_input("x")), errc::invalid);
  on->wait_for_end(all);
  EXPECT_EQ(all.now().bytes, 0U);
}

TEST_P(os_process_case, input_that_nobody_reads_is_refused_beyond_a_limit) {
  recorder all;
  os_command c = on->command("stubborn");
  c.input = os_stdio::pipe;
  const auto p = on->start(c, all);
  result<void> last;
  int taken = 0;
  for (; last && taken < 1000; ++taken) last = p->write_input(std::string(64 << 10, 'x'));
  EXPECT_EQ(code_of(last), errc::capacity);
  EXPECT_GE(taken, 16);
  (void)p->signal_group(sigkill);
  on->wait_for_end(all);
}

TEST_P(os_process_case, input_for_a_program_that_has_closed_it_is_refused) {
  recorder all;
  os_command c = on->command("deaf");
  c.input = os_stdio::pipe;
  const auto p = on->start(c, all);
  on->wait_until_ready(all);
  result<void> last = p->write_input("x");  // the first one may only find out
  while (last) last = p->write_input("x");
  EXPECT_EQ(code_of(last), errc::exited);
  EXPECT_EQ(all.now().ends, 0);
  (void)p->signal(sigkill);
  on->wait_for_end(all);
}

TEST_P(os_process_case, output_that_is_held_back_comes_later_and_does_not_delay_the_end) {
  recorder all;
  os_command c = on->command("cat");
  c.input = os_stdio::pipe;
  const auto p = on->start(c, all);
  p->hold_output();
  EXPECT_TRUE(p->write_input("hello"));
  p->close_input();
  on->wait_for_end(all);
  EXPECT_EQ(all.now().output, "");
  p->release_output();
  on->wait(all, [](const report& r) { return r.closes > 0; });
  EXPECT_EQ(all.now().output, "hello");
}

// ---- signals

TEST_P(os_process_case, a_program_decides_itself_about_a_signal_that_it_handles) {
  recorder all;
  const auto p = on->start(on->command("polite"), all);
  on->wait_until_ready(all);
  EXPECT_TRUE(p->signal(sigterm));
  on->wait_for_end(all);
  EXPECT_EQ(all.now().output, "ready\nbye\n");
  EXPECT_EQ(all.now().how.code, 7);
}

TEST_P(os_process_case, a_program_that_ignores_a_request_to_end_can_be_killed) {
  recorder all;
  const auto p = on->start(on->command("stubborn"), all);
  on->wait_until_ready(all);
  EXPECT_TRUE(p->signal(sigterm));
  EXPECT_TRUE(p->signal(0)) << "it is still there";
  EXPECT_EQ(all.now().ends, 0);
  EXPECT_TRUE(p->signal_group(sigkill));
  on->wait_for_end(all);
  EXPECT_EQ(all.now().how.signal, sigkill);
}

TEST_P(os_process_case, a_signal_to_the_group_reaches_descendants_even_after_the_end_of_the_program) {
  for (const os_group group : {os_group::own, os_group::session}) {
    recorder all;
    os_command c = on->command("parent");
    c.group = group;
    const auto p = on->start(c, all);
    on->wait_for_end(all);
    EXPECT_EQ(all.now().closes, 0) << "a descendant has its output";
    EXPECT_TRUE(p->signal_group(sigkill));
    on->wait(all, [](const report& r) { return r.closes > 0; });
  }
}

TEST_P(os_process_case, a_signal_to_our_own_group_is_refused) {
  recorder all;
  os_command c = on->command("stubborn");
  c.group = os_group::inherit;
  const auto p = on->start(c, all);
  on->wait_until_ready(all);
  EXPECT_EQ(code_of(p->signal_group(sigkill)), errc::invalid);
  EXPECT_TRUE(p->signal(sigkill));
  on->wait_for_end(all);
}

TEST_P(os_process_case, a_signal_that_does_not_exist_is_refused) {
  recorder all;
  const auto p = on->start(on->command("stubborn"), all);
  EXPECT_EQ(code_of(p->signal(1000)), errc::invalid);
  EXPECT_EQ(code_of(p->signal_group(-1)), errc::invalid);
  (void)p->signal_group(sigkill);
  on->wait_for_end(all);
}

// ---- starting

TEST_P(os_process_case, a_program_that_does_not_exist_is_an_error_that_names_it) {
  for (const char* name : {"coppice-has-no-such-program", "/nowhere/program"}) {
    const auto p = on->processes().spawn({.program = name}, {});
    ASSERT_FALSE(p);
    EXPECT_EQ(code_of(p.error()), errc::not_found);
    EXPECT_NE(p.error().text().find(name), std::string::npos) << p.error();
  }
}

TEST_P(os_process_case, a_command_that_makes_no_sense_is_refused) {
  const auto refused = [&](os_command c) {
    const auto p = on->processes().spawn(c, {});
    return !p && code_of(p.error()) == errc::invalid;
  };
  EXPECT_TRUE(refused({.program = ""}));
  EXPECT_TRUE(refused({.program = "x", .arguments = {std::string{"a\0b", 3}}}));
  EXPECT_TRUE(refused({.program = "x", .variables = {{"a=b", "c"}}}));
  EXPECT_TRUE(refused({.program = "x", .variables = {{"", "c"}}}));
  EXPECT_TRUE(refused({.program = "x", .directory = std::string{"/tmp\0", 5}}));
  EXPECT_TRUE(refused({.program = "x", .descriptors = {{.ours = 0, .theirs = 2}}}));
  EXPECT_TRUE(refused({.program = "x", .descriptors = {{.ours = -1, .theirs = 3}}}));
  EXPECT_TRUE(refused({.program = "x", .descriptors = {{.ours = 0, .theirs = 3}, {.ours = 1, .theirs = 3}}}));
}

TEST_P(os_process_case, programs_that_run_at_the_same_time_have_different_numbers) {
  recorder first;
  recorder second;
  const auto p = on->start(on->command("exits", {"0"}), first);
  on->wait_for_end(first);
  const auto q = on->start(on->command("exits", {"0"}), second);
  on->wait_for_end(second);
  EXPECT_NE(p->id(), q->id()) << "the first one has a handle still";
}

// ---- handles

TEST_P(os_process_case, nothing_is_reported_to_who_has_destroyed_its_handle) {
  for (int i = 0; i < 20; ++i) {
    auto all = std::make_unique<recorder>();
    auto p = on->start(on->command("ticks"), *all);
    on->wait_until_ready(*all);
    EXPECT_TRUE(p->signal_group(i % 2 == 0 ? 0 : sigkill));
    p.reset();
    all.reset();  // the address sanitizer finds a late report
  }
}

TEST_P(os_process_case, what_the_functions_have_captured_is_destroyed_with_the_handle) {
  const auto captured = std::make_shared<int>(1);
  os_process_events events;
  events.ended = [captured](const os_exit&) {};
  auto p = on->processes().spawn(on->command("stubborn"), std::move(events));
  ASSERT_TRUE(p);
  EXPECT_EQ(captured.use_count(), 2);
  (void)(*p)->signal_group(sigkill);
  p->reset();
  EXPECT_EQ(captured.use_count(), 1);
}

TEST_P(os_process_case, a_handle_may_be_destroyed_by_its_own_report) {
  recorder all;
  std::mutex mutex;
  std::unique_ptr<os_process> p;
  os_process_events events;
  events.ended = [&, kept = std::string(100, 'x')](const os_exit&) {
    {
      const std::scoped_lock lock{mutex};
      p.reset();
    }
    all.change([&](report& r) { r.output = kept, ++r.ends; });
  };
  {
    const std::scoped_lock lock{mutex};
    auto started = on->processes().spawn(on->command("exits", {"0"}), std::move(events));
    ASSERT_TRUE(started);
    p = *std::move(started);
  }
  on->wait_for_end(all);
  EXPECT_EQ(all.now().output.size(), 100U);
}

TEST_P(os_process_case, functions_that_own_the_handle_are_destroyed_after_the_last_report) {
  struct owner {
    explicit owner(recorder* r) : all{r} {}
    owner(const owner&) = delete;
    owner& operator=(const owner&) = delete;
    ~owner() {
      program.reset();
      all->change([](report& r) { r.output = "destroyed"; });
    }
    recorder* all;
    std::unique_ptr<os_process> program;
  };
  for (const os_stdio kind : {os_stdio::pipe, os_stdio::null}) {
    recorder all;
    auto owns = std::make_shared<owner>(&all);
    std::mutex mutex;
    os_process_events events;
    events.ended = [owns, &mutex](const os_exit&) { const std::scoped_lock after_spawn{mutex}; };
    os_command c = on->command("exits", {"0"});
    c.output = c.error = kind;
    {
      const std::scoped_lock lock{mutex};
      owns->program = *on->processes().spawn(c, std::move(events));
      owns.reset();
    }
    on->wait(all, [](const report& r) { return r.output == "destroyed"; });
  }
}

TEST_P(os_process_case, a_report_may_start_the_next_program) {
  recorder all;
  std::vector<std::unique_ptr<os_process>> running;  // by the thread of the reports only, after the first one
  std::function<void()> next = [&] {
    os_process_events events;
    events.ended = [&](const os_exit&) {
      if (running.size() < 10) next();
      all.change([](report& r) { ++r.ends; });
    };
    auto p = on->processes().spawn(on->command("exits", {"0"}), std::move(events));
    ASSERT_TRUE(p);
    running.push_back(*std::move(p));
  };
  os_process_events first;
  first.ended = [&](const os_exit&) { next(); };
  const auto p = on->processes().spawn(on->command("exits", {"0"}), std::move(first));
  on->wait(all, [](const report& r) { return r.ends == 10; });
}

TEST_P(os_process_case, thousands_of_short_programs_leave_nothing_behind) {
  (void)on->run(on->command("says", {"what stays open for good is open now"}));
  const std::string before = on->leftovers();
  int ok = 0;
  for (int wave = 0; wave < 40; ++wave) {
    std::vector<std::unique_ptr<recorder>> records;
    std::vector<std::unique_ptr<os_process>> running;
    for (int i = 0; i < 50; ++i) {
      os_command c = on->command("exits", {std::to_string(i)});
      c.input = os_stdio::pipe;
      running.push_back(on->start(c, *records.emplace_back(std::make_unique<recorder>())));
    }
    for (int i = 0; i < 50; ++i) {
      if (i % 10 == 0) running[static_cast<std::size_t>(i)].reset();  // its end is nobody's business then
      if (i % 10 == 0) continue;
      recorder& mine = *records[static_cast<std::size_t>(i)];
      on->wait_for_end(mine);
      if (mine.now().how.code == i) ++ok;
    }
    running.clear();
  }
  EXPECT_EQ(ok, 40 * 45);
  EXPECT_EQ(on->leftovers(), before);
}

}  // namespace coppice::os_process_cases
