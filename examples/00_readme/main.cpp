#include <iostream>
#include <stdexcept>
#include <string>

#include <coppice/coppice.hpp>

struct greeter {  // a server is a plain class with handlers
  struct greet {
    using reply = std::string;
    std::string who;
  };
  using protocol = coppice::protocol<greet>;
  std::string handle(const greet& m) const {
    if (m.who.empty()) throw std::invalid_argument{"nobody to greet"};
    return "hello, " + m.who;
  }
};

coppice::task<> visitor(coppice::self& me) {  // or a process is a coroutine that waits
  me.subscribe<coppice::supervisor_event>();
  for (const char* who : {"world", "", "wood"}) {
    const auto answer = co_await coppice::call<greeter::greet>(me.where("greeter"), who);
    std::cout << (answer ? *answer : answer.error().to_string()) << '\n';
    bool there = answer.has_value();
    while (!there) {  // it failed: its supervisor starts another
      const auto event = co_await me.receive<coppice::supervisor_event>();
      std::cout << "  " << event.text << '\n';
      there = event.what == coppice::supervisor_event::kind::restarted;
    }
  }
}

int main() {  // when the visitor is done, so is the program
  using coppice::child;
  using coppice::restart;
  return coppice::application{
      {
          .name = "greetings",
          .supervise = {child<greeter>().with({.name = "greeter"}),
                        child(visitor).with({.id = "visitor", .restart = restart::transient, .significant = true})},
          .auto_shutdown = coppice::auto_shutdown::any_significant,
      }}
      .run();
}
