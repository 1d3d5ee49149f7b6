// A process is a function that waits for messages. This one prints a greeting for each name it receives, until it is
// told to stop.
#include <iostream>
#include <string>
#include <variant>

#include <coppice/coppice.hpp>

using coppice::pid;
using coppice::self;
using coppice::task;

namespace {

struct hello {
  std::string who;
};
struct goodbye {};

task<> greeter(self& me, std::string greeting) {
  for (;;) {
    const auto mail = co_await me.receive<hello, goodbye>();
    if (std::holds_alternative<goodbye>(mail)) co_return;
    std::cout << greeting << ", " << std::get<hello>(mail).who << "!\n";
  }
}

}  // namespace

int main() {
  coppice::runtime rt;
  const pid p = rt.spawn(greeter, "Good morning");
  rt.send(p, hello{"world"});
  rt.send(p, hello{"wood"});
  rt.send(p, goodbye{});
  rt.wait(p);
  std::cout << "the greeter has ended\n";
}
