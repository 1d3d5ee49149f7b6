// An await in a condition, in a coroutine whose outermost scope has no local variable.
#include "probe.hpp"

namespace {

task<int> two() { co_return 2; }

template <task<int> (*Body)()>
bool gives_seven() {
  return Body().run() == 7;
}

task<int> await_in_if() {
  if (co_await two() == 2) {
    co_return 7;
  }
  co_return 9;
}
const probe p1{"await_in_if", gives_seven<await_in_if>};
task<int> await_in_if_initializer() {
  if (int n = co_await two(); n == 2) {
    co_return 7;
  }
  co_return 9;
}
const probe p2{"await_in_if_initializer", gives_seven<await_in_if_initializer>};
task<int> await_in_while() {
  while (co_await two() != 2) {}
  co_return 7;
}
const probe p3{"await_in_while", gives_seven<await_in_while>};
task<int> await_in_do_while() {
  do {
  } while (co_await two() != 2);
  co_return 7;
}
const probe p4{"await_in_do_while", gives_seven<await_in_do_while>};
task<int> await_in_for() {
  for (; co_await two() != 2;) {}
  co_return 7;
}
const probe p8{"await_in_for", gives_seven<await_in_for>};
task<int> await_in_switch() {
  switch (co_await two()) {
    case 2: co_return 7;
    default: co_return 9;
  }
}
const probe p5{"await_in_switch", gives_seven<await_in_switch>};

// The same with one local in the outermost scope.
task<int> await_in_if_beside_a_local() {
  int wanted = 2;
  if (co_await two() == wanted) {
    co_return 7;
  }
  co_return 9;
}
const probe p6{"await_in_if_beside_a_local", gives_seven<await_in_if_beside_a_local>};
// The form we use instead.
task<int> await_before_if() {
  const int n = co_await two();
  if (n == 2) {
    co_return 7;
  }
  co_return 9;
}
const probe p7{"await_before_if", gives_seven<await_before_if>};

}  // namespace
