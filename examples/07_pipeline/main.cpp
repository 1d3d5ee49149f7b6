// A pipeline: each stage depends on those before it, so when one fails, it and those after it are restarted, and the
// stages before it go on.
#include <iostream>

#include <coppice/coppice.hpp>

using namespace std::chrono_literals;

namespace {

/// One stage. Says when it begins and ends.
class stage {
 public:
  struct fail {};
  using protocol = coppice::protocol<fail>;
  static constexpr bool traps_exits = true;  // so that `terminate` runs when the supervisor stops it

  explicit stage(std::string name) : name_{std::move(name)} { std::cout << name_ << " begins\n"; }
  void terminate(const coppice::exit_reason& why) const { std::cout << name_ << " ends: " << why << '\n'; }
  void handle(fail) { throw std::runtime_error{"a leak"}; }

 private:
  std::string name_;
};

/// The name is the id and the name under which it is found.
coppice::child_spec stage_called(const std::string& name) {
  return coppice::child<stage>(name).with({.id = name, .name = name});
}

/// A supervisor in the form of a type.
struct pipeline {
  static coppice::supervisor_spec init() {
    return {
        .strategy = coppice::strategy::rest_for_one,
        .limit = {.restarts = 3, .within = 5s},
        .children = {stage_called("source"), stage_called("filter"), stage_called("sink")},
    };
  }
};

coppice::task<coppice::result<void>> play(coppice::self& me) {
  me.trap_exits();
  me.subscribe<coppice::supervisor_event>();
  const coppice::supervisor_spec tree{.children = {coppice::child<pipeline>()}};
  const coppice::spawn_options linked{.link = true};
  const auto root = co_await coppice::start<coppice::supervisor>(me, linked, tree);
  if (!root) co_return std::unexpected{root.error()};

  std::cout << "-- the filter fails\n";
  me.send("filter", stage::fail{});
  bool whole = false;
  while (!whole) {  // the sink is the last to come back
    const auto event = co_await me.receive<coppice::supervisor_event>();
    whole = event.what == coppice::supervisor_event::kind::restarted && event.child == "sink";
  }
  std::cout << "-- and all stop, the last first\n";
  const auto stopped = co_await coppice::stop(me, *root, coppice::exit_reason::shutdown());
  co_return stopped;
}

}  // namespace

int main() {
  coppice::runtime rt{{.level = coppice::log_level::off}};
  const auto played = rt.await(play);
  if (!played) std::cerr << played.error() << '\n';
  return played ? 0 : 1;
}
