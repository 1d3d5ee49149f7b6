// A counter that fails and is started again, from its initial state, by its supervisor. Three failures within five
// seconds are one too many: the supervisor gives up.
#include <iostream>

#include <coppice/coppice.hpp>

using namespace std::chrono_literals;

namespace {

struct counter {
  struct bump {
    using reply = int;
    int by = 1;
  };
  struct misfortune {};
  using protocol = coppice::protocol<bump, misfortune>;

  explicit counter(int start) : value{start} {}
  int handle(bump m) { return value += m.by; }
  static void handle(misfortune) { throw std::runtime_error{"out of luck"}; }

  int value;
};

/// Who runs as the counter after the next restart; nobody when the supervisor has given up.
coppice::task<coppice::pid> successor(coppice::self& me) {
  using kind = coppice::supervisor_event::kind;
  for (;;) {
    const auto event = co_await me.receive<coppice::supervisor_event>();
    if (event.what == kind::restarted) co_return event.who;
    if (event.what == kind::gave_up) co_return coppice::pid{};
  }
}

coppice::task<coppice::result<void>> play(coppice::self& me) {
  me.trap_exits();  // or its end would be ours
  const coppice::supervisor_spec spec{
      .limit = {.restarts = 2, .within = 5s},
      .children = {coppice::child<counter>(41)},
  };
  const coppice::spawn_options linked{.link = true};
  const auto tree = co_await coppice::start<coppice::supervisor>(me, linked, spec);
  if (!tree) co_return std::unexpected{tree.error()};

  me.subscribe<coppice::supervisor_event>();
  const auto first = co_await coppice::which_child(*tree, "counter");
  coppice::pid who = first->who;
  while (who) {
    const auto value = co_await coppice::call<counter::bump>(who, 1);
    std::cout << "the counter says " << *value << '\n';
    me.send(who, counter::misfortune{});
    who = co_await successor(me);
  }
  std::cout << "the supervisor has given up\n";
  co_return coppice::result<void>{};
}

}  // namespace

int main() {
  coppice::runtime rt{{.level = coppice::log_level::off}};
  const auto played = rt.await(play);
  if (!played) std::cerr << played.error() << '\n';
  return played ? 0 : 1;
}
