// The smallest program with a server: what a user of Coppice pays for each file that includes all of it.
#include <coppice/coppice.hpp>

struct counter {
  struct bump {
    using reply = int;
    int by = 1;
  };
  struct reset {};
  int handle(bump m) { return value += m.by; }
  void handle(reset) { value = 0; }
  int value = 0;
};

int main() {
  coppice::runtime rt;
  const coppice::ref<counter> counters = rt.spawn<counter>();
  rt.cast<counter::reset>(counters);
  return rt.call(counters.call<counter::bump>(3)).value_or(0) == 3 ? 0 : 1;
}
