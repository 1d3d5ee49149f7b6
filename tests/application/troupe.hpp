#pragma once
// Applications in a simulated world, whose parts write down what happens to them.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include <coppice/application/application.hpp>
#include <coppice/sim/world.hpp>

namespace coppice {

using namespace std::chrono_literals;
using lines = std::vector<std::string>;

/// What happened, and what the next starts of each part shall do: "ok", "fail", "throw", "hang".
struct journal {
  lines all;
  std::map<std::string, std::deque<std::string>> starts;
  std::map<std::string, pid> pids;

  void note(std::string line) { all.push_back(std::move(line)); }
  lines take() { return std::exchange(all, {}); }
  std::string next_start(const std::string& id) {
    auto& plan = starts[id];
    if (plan.empty()) return "ok";
    const std::string next = plan.front();
    plan.pop_front();
    return next;
  }
};

/// A child: says when it starts and stops.
struct part {
  struct finish {
    exit_reason why;
  };
  static constexpr bool traps_exits = true;
  using protocol = coppice::protocol<finish>;

  part(journal* into, std::string name, std::chrono::nanoseconds goodbye = 0s)
      : book{into}, id{std::move(name)}, stops_for{goodbye} {}
  task<init_result> init(self& me) {
    const std::string how = book->next_start(id);
    if (how == "fail") co_return init_result::fail(error{errc::invalid, "no luck today"});
    if (how == "throw") throw std::runtime_error{"out of luck"};
    if (how == "hang") co_await me.sleep(24h);
    book->note("+" + id);
    book->pids[id] = me.id();
    co_return init_result::ok();
  }
  task<> terminate(const exit_reason&, self& me) {
    if (stops_for > 0s) co_await me.sleep(stops_for);
    book->note("-" + id);
  }
  static void handle(finish m, self& me) { me.stop(std::move(m.why)); }

  journal* book;
  std::string id;
  std::chrono::nanoseconds stops_for;
};

/// A world of one node, and a program on it.
class troupe {
 public:
  explicit troupe(std::uint64_t seed = 1) : world{seed} {}

  [[nodiscard]] child_spec child(const std::string& id, const child_options& how = {},
                                 std::chrono::nanoseconds goodbye = 0s) {
    return coppice::child<part>(&book, id, goodbye).with({.id = id}).with(how);
  }
  [[nodiscard]] application_hook notes(const std::string& line) {
    return [this, line] { book.note(line); };
  }
  /// With one child of the same name, `a` in application `A`, and hooks that are noted.
  [[nodiscard]] application_options app(const std::string& name, std::vector<std::string> depends_on = {}) {
    const std::string id = name + ".child";
    return {.name = name,
            .supervise = {child(id)},
            .depends_on = std::move(depends_on),
            .start = notes("start " + name),
            .prep_stop = notes("prep_stop " + name),
            .stop = notes("stop " + name)};
  }

  void start(const applications& all, run_options how = {}) {
    running.emplace(all.start(node.rt(), std::move(how)));
    world.settle();
  }
  void signal(os_signal s = os_signal::terminate) {
    node.raise(s);
    world.settle();
  }
  void finish(const std::string& id, exit_reason why) {
    node.rt().send(book.pids[id], part::finish{std::move(why)});
    world.settle();
  }
  void crash(const std::string& id) { finish(id, exit_reason::error("crash")); }
  /// How it ended; `running` while it has not.
  [[nodiscard]] std::string outcome() const {
    const auto out = running->ended();
    return out ? std::string{to_string(out->what)} : "running";
  }
  [[nodiscard]] int code() const {
    const auto out = running->ended();
    return out ? out->exit_code() : -1;
  }
  [[nodiscard]] std::string text() const {
    const auto out = running->ended();
    return out ? out->text : "";
  }
  /// What is left of the program.
  [[nodiscard]] std::size_t processes() { return node.rt().snapshot().size(); }

  journal book;
  sim::world world;
  sim::node& node = world.add_node();
  std::optional<running_program> running;
};

}  // namespace coppice
