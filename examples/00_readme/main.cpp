// The program on the front page: a process fails; the one linked to it is told, and starts another.
#include <iostream>
#include <stdexcept>
#include <string>

#include <coppice/coppice.hpp>

struct greeter {  // a process may be a plain object with handlers, ...
  struct greet {
    using reply = std::string;
    std::string who;
  };
  std::string handle(const greet& m) const {
    if (m.who.empty()) throw std::invalid_argument{"nobody to greet"};
    return "hello, " + m.who;
  }
};

coppice::task<> keeper(coppice::self& me) {  // ... or a coroutine that waits
  me.trap_exits();                           // the end of a linked process comes as a message
  auto greeters = me.spawn_link<greeter>();
  for (const char* who : {"world", "", "wood"}) {
    const auto answer = co_await greeters.call<greeter::greet>(who);
    if (answer) {
      std::cout << *answer << '\n';
      continue;
    }
    const auto end = co_await me.receive<coppice::exited>();
    std::cout << "the greeter ended: " << end.reason << '\n';
    greeters = me.spawn_link<greeter>();
  }
}

int main() {
  coppice::runtime rt;
  rt.run(keeper);
}
