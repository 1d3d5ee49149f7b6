// How a process learns about the end of others: by a link, by a monitor, or by ending with them.
#include <iostream>
#include <stdexcept>

#include <coppice/coppice.hpp>

using coppice::down;
using coppice::exit_reason;
using coppice::exited;
using coppice::pid;
using coppice::self;
using coppice::task;

struct work {
  int number;
};

task<> worker(self& me) {
  for (;;) {
    const work w = co_await me.receive<work>();
    if (w.number == 0) throw std::domain_error{"division by zero"};
    std::cout << "worker: 100 / " << w.number << " is " << 100 / w.number << '\n';
  }
}

// Linked and trapping: the end of the other comes as a message.
task<> by_link(self& me) {
  me.trap_exits();
  const pid child = me.spawn_link(worker);
  me.send(child, work{5});
  me.send(child, work{0});
  const exited end = co_await me.receive<exited>();
  std::cout << "link: " << (end.from == child ? "the worker" : "somebody") << " ended: " << end.reason << '\n';
}

// A monitor works in one direction: the end of the watching process does not affect the watched one.
task<> by_monitor(self& me) {
  const auto [child, ref] = me.spawn_monitor(worker);
  me.exit(child, exit_reason::shutdown("go home"));
  const down first = co_await me.receive<down>();
  std::cout << "monitor: " << first.reason << '\n';
  me.monitor(child);  // it has ended by now, so nobody knows why any more
  const down second = co_await me.receive<down>();
  std::cout << "monitor, too late: " << second.reason << '\n';
}

// Linked and not trapping: a failure takes the process with it.
task<> linked_without_trapping(self& me) {
  const pid child = me.spawn_link(worker);
  me.send(child, work{0});
  co_await me.receive<work>();  // never comes
}

// No process survives a kill, but processes linked to it receive the ordinary reason `killed`.
task<> killing(self& me) {
  me.trap_exits();
  const pid child = me.spawn_link(worker);
  me.kill(child);
  const exited end = co_await me.receive<exited>();
  std::cout << "kill: the worker was " << end.reason << ", and we live\n";
}

task<> tell_all(self& me) {
  co_await by_link(me);
  co_await by_monitor(me);
  me.spawn_monitor(linked_without_trapping);
  const down end = co_await me.receive<down>();
  std::cout << "without trapping: " << end.reason << '\n';
  co_await killing(me);
}

int main() {
  coppice::runtime rt{{.level = coppice::log_level::off}};  // failures are expected here; usually they are logged
  rt.run(tell_all);
}
