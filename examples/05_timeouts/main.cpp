// Time in a process: a receive that gives up, timers that can be cancelled, calls that do not wait for ever.
#include <chrono>
#include <iostream>
#include <variant>

#include <coppice/coppice.hpp>

using namespace std::chrono_literals;
using coppice::pid;
using coppice::result;
using coppice::self;
using coppice::task;
using coppice::timed_out;
using coppice::timer_fired;
using coppice::timer_ref;

namespace {

struct news {
  int number;
};
struct question {
  using reply = int;
};

task<> waits_in_vain(self& me) {
  const auto begin = me.now();
  const auto mail = co_await me.receive<news>(20ms);  // a variant: the message, or timed_out
  std::cout << (std::holds_alternative<timed_out>(mail) ? "no news" : "news")
            << ", and never too early: " << (me.now() - begin >= 20ms ? "true" : "false") << '\n';
}

task<> looks_without_waiting(self& me) {
  me.send(me.id(), news{1});
  const auto first = co_await me.receive<news>(0s);  // only what has arrived
  const auto second = co_await me.receive<news>(0s);
  std::cout << "there was " << (std::holds_alternative<news>(first) ? "one" : "none") << ", then "
            << (std::holds_alternative<news>(second) ? "one" : "none") << '\n';
}

task<> uses_timers(self& me) {
  me.send_after(5ms, me.id(), news{2});          // any message, to anybody
  const timer_ref early = me.start_timer(10ms);  // received as timer_fired{early}
  const timer_ref late = me.start_timer(1h);
  const news n = co_await me.receive<news>();
  std::cout << "news " << n.number << '\n';
  const timer_fired rung = co_await me.receive<timer_fired>();
  std::cout << (rung.ref == early ? "the early timer" : "another timer") << '\n';
  const bool in_time = me.cancel(late);  // after this no timer_fired{late} is ever received
  std::cout << (in_time ? "cancelled in time" : "too late") << '\n';
}

// Does something every five milliseconds, whatever mail comes meanwhile.
task<> beats(self& me, int times) {
  for (int beat = 1; beat <= times; ++beat) {
    const timer_ref next = me.start_timer(5ms);
    for (bool over = false; !over;) {
      const auto mail = co_await me.receive<timer_fired, news>();
      const auto* rung = std::get_if<timer_fired>(&mail);
      over = rung != nullptr && rung->ref == next;
    }
    std::cout << "beat " << beat << '\n';
  }
}

task<> never_answers(self& me) {
  const auto held = co_await me.receive<coppice::request<question>>();
  co_await me.sleep(1h);
}

task<> calls_in_vain(self& me) {
  const pid server = me.spawn_link(never_answers);
  const result<int> answer = co_await coppice::call<question>(server).within(10ms);
  std::cout << "the call: " << to_string(answer.error().code()) << '\n';
}

task<> all_of_it(self& me) {
  co_await waits_in_vain(me);
  co_await looks_without_waiting(me);
  co_await uses_timers(me);
  co_await beats(me, 3);
  co_await calls_in_vain(me);
}

}  // namespace

int main() {
  coppice::runtime rt;
  rt.run(all_of_it);
}
