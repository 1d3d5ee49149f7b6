// A process that is an object: a class with handlers, which can be tested without any runtime.
#include <iostream>
#include <utility>
#include <vector>

#include <coppice/coppice.hpp>

using coppice::ref;
using coppice::reply_to;
using coppice::result;
using coppice::self;
using coppice::task;

namespace {

class counter {
 public:
  struct bump {  // a call names its reply
    using reply = int;
    int by = 1;
  };
  struct reset {};  // a cast has none
  struct reach {    // answered once the counter is there
    using reply = void;
    int goal = 0;
  };
  struct stop {};

  explicit counter(int start) : value_{start} {}

  int handle(bump m) {
    value_ += m.by;
    std::erase_if(waiting_, [&](auto& w) { return value_ >= w.first && w.second.reply(); });
    return value_;
  }
  void handle(reset) { value_ = 0; }
  void handle(reach m, reply_to<void> later) {
    if (value_ >= m.goal)
      later.reply();
    else
      waiting_.emplace_back(m.goal, std::move(later));
  }
  void handle(stop, self& me) { me.stop(coppice::exit_reason::shutdown("enough")); }

 private:
  int value_;
  std::vector<std::pair<int, reply_to<void>>> waiting_;
};

task<> wait_for_ten(self&, ref<counter> counters) {
  const result<void> reached = co_await counters.call<counter::reach>(10).within(coppice::forever);
  std::cout << (reached ? "ten is reached\n" : "the counter is gone\n");
}

}  // namespace

int main() {
  counter alone{5};
  std::cout << "without a runtime: " << alone.handle(counter::bump{2}) << '\n';

  coppice::runtime rt;
  const ref<counter> counters = rt.spawn<counter>(0);
  std::cout << "bump: " << *rt.call(counters.call<counter::bump>()) << '\n';
  std::cout << "bump by 3: " << *rt.call(counters.call<counter::bump>(3)) << '\n';
  rt.cast<counter::reset>(counters);  // does not wait; what follows from here is handled after it
  std::cout << "after a reset: " << *rt.call(counters.call<counter::bump>()) << '\n';

  const auto waiting = rt.spawn(wait_for_ten, counters);
  rt.cast<counter::bump>(counters, 9);  // its answer is dropped
  rt.wait(waiting);

  rt.cast<counter::stop>(counters);
  rt.wait(counters.id());
  const result<int> late = rt.call(counters.call<counter::bump>());
  std::cout << "after its end: " << late.error() << '\n';
}
