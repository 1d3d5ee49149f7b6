#pragma once
// A simulated world with actors that do what a test tells them, and write down what they receive.
#include <memory>
#include <string>
#include <vector>

#include <coppice/actor/router.hpp>
#include <coppice/sim/world.hpp>

namespace coppice::studio {

using namespace actor;
using namespace std::chrono_literals;
using lines = std::vector<std::string>;

/// Runs in the actor.
struct act {
  std::function<void(context&)> what;
};
struct note {
  static constexpr bool can_be_broadcast = true;
  std::string text;
  [[nodiscard]] std::string_view routing_key() const { return text; }
};
struct question {
  static constexpr bool can_be_broadcast = true;
  using reply = std::string;
  std::string text;
};
struct urgent_note {
  static constexpr int priority = 7;
  std::string text;
};
struct ranked_note {
  int rank;
  std::string text;
  [[nodiscard]] int priority() const { return rank; }
};
/// Does not interrupt a receive timeout.
struct whisper {
  static constexpr bool keeps_receive_timeout = true;
};

/// Writes `<name>: <what>` for all that it receives; answers questions with their text.
class player {
 public:
  using protocol = coppice::protocol<act, note, question, urgent_note, ranked_note, whisper, std::string, error>;
  player(std::string name, std::shared_ptr<lines> book) : name_{std::move(name)}, book_{std::move(book)} {}

  void handle(started) { say("started"); }
  void handle(stopping) { say("stopping"); }
  void handle(stopped) { say("stopped"); }
  void handle(restarting) { say("restarting"); }
  void handle(const terminated& m) {
    say("terminated " + std::string{to_string(m.why)} + " " + std::string{to_string(m.reason.what())});
  }
  void handle(receive_timeout) { say("receive timeout"); }
  void handle(const act& m, context& me) { m.what(me); }
  void handle(const note& m, context& me) { say(m.text + (me.sender() ? " from somebody" : "")); }
  std::string handle(question m) { return m.text; }
  void handle(const urgent_note& m) { say(m.text); }
  void handle(const ranked_note& m) { say(m.text); }
  void handle(whisper) { say("whisper"); }
  void handle(const std::string& m) { say("text " + m); }
  void handle(const error& m) { say("error " + std::string{to_string(m.code())}); }

 private:
  void say(const std::string& what) { book_->push_back(name_ + ": " + what); }
  std::string name_;
  std::shared_ptr<lines> book_;
};
using player_ref = actor_ref<player>;

/// Somebody outside, who counts dead letters.
class stage {
 public:
  explicit stage(std::uint64_t seed = 1) : world{seed}, rt{world.add_node().rt()} {}

  [[nodiscard]] props<player> role(std::string name) const { return props<player>(std::move(name), book); }
  player_ref enter(std::string name, const actor_options& options = {}) {
    const player_ref who = spawn_actor(rt, role(std::move(name)).with(options));
    world.settle();
    return who;
  }
  /// Does `what` in the actor, and lets everything happen that follows from it.
  template <class F>
  void in(player_ref who, F what) {
    rt.cast<act>(who, what);
    world.settle();
  }
  void tell(player_ref who, std::string text) { rt.cast<note>(who, std::move(text)); }
  /// What was written since it was last looked at.
  [[nodiscard]] lines heard() {
    world.settle();
    return std::exchange(*book, {});
  }
  void pass(std::chrono::nanoseconds time) { world.run_for(time); }
  [[nodiscard]] std::uint64_t dead_letters() { return rt.counters().dead_letters; }

  std::shared_ptr<lines> book = std::make_shared<lines>();
  sim::world world;
  runtime& rt;
};

}  // namespace coppice::studio
