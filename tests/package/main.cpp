// The smallest program that needs every part of the package: headers, runtime, platform.
#include <cstdio>

#include <coppice/coppice.hpp>

#include "hello.hpp"

coppice::task<> body(coppice::self& me, int n) {
  const auto letter = co_await me.receive<hello>();
  std::printf("hello %d\n", letter.n + n);
}

int main() {
  coppice::runtime runtime;
  const auto greeter = runtime.spawn(body, 1);
  runtime.send(greeter, hello{.n = 41});
  runtime.wait(greeter);
}
