// One process stuck in each of many ways. Prints what the runtime says about each, then asks `all_are_stuck`, where a
// debugger can stop it.
#include <future>
#include <iostream>
#include <optional>
#include <semaphore>
#include <thread>

#include <coppice/coppice.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct never {};
struct other {};
struct ask {
  using reply = int;
};
struct introduction {
  pid whom;
};

/// Opened at the end, so that the program can end.
std::counting_semaphore<> gate{0};
std::optional<promise<int>> of_operation;
std::optional<promise<int>> of_future;

struct hung_work {
  void operator()() const { gate.acquire(); }
};
struct foreign_read {
  void operator()(promise<int> done) const { of_operation.emplace(std::move(done)); }
};

task<> receives(self& me) { co_await me.receive<never>(); }
task<> deeper(self& me) { co_await me.receive<never, other>(); }
task<> waits_below(self& me) { co_await deeper(me); }
task<> asks(self& me) {
  const auto to = co_await me.receive<introduction>();
  (void)co_await call<ask>(to.whom).within(forever);
}
task<> sleeps(self& me) { co_await me.sleep(1h); }
task<> blocks(self& me) {
  const hung_work work;
  co_await me.blocking(work);
}
task<> works_in_lane(self&, lane* where) {
  auto work = in_lane(*where, hung_work());
  (void)co_await std::move(work);
}
task<> performs(self& me) {
  auto work = me.perform<int>(foreign_read());
  (void)co_await std::move(work);
}
task<> awaits_a_promise(self& me) {
  auto [end, start] = make_promise<int>(me);
  of_future.emplace(std::move(end));
  (void)co_await start;
}

struct idle_server {
  void handle(other) const {}
};
struct busy_server {
  [[gnu::noinline]] void handle(other) const { gate.acquire(); }
};
struct waiting_server {
  using protocol = coppice::protocol<introduction>;
  task<> handle(introduction i) const {  // NOLINT(readability-convert-member-functions-to-static)
    (void)co_await call<ask>(i.whom).within(forever);
  }
};

}  // namespace

extern "C" [[gnu::noinline]] void all_are_stuck() { std::cout << "all are stuck" << std::endl; }

int main() {
  const auto database = real_environment()->lanes().open("database");
  runtime rt{{.workers = 2, .stall_after = 50ms, .level = log_level::off}};
  const auto named = [&](const char* name, auto body, auto... args) {
    return *rt.spawn({.name = name}, body, args...);
  };
  const pid in_receive = named("in_receive", receives);
  const pid with_other_mail = named("with_other_mail", receives);
  const pid below = named("in_a_nested_function", waits_below);
  const pid caller = named("in_call", asks);
  const pid first = named("in_a_cycle", asks);
  const pid second = named("also_in_a_cycle", asks);
  const pid sleeper = named("in_sleep", sleeps);
  const pid blocker = named("in_blocking", blocks);
  const pid laner = named("in_lane", works_in_lane, database.get());
  const pid performer = named("in_operation", performs);
  const pid promised = named("in_promise", awaits_a_promise);
  const pid frozen = named("frozen", receives);
  const ref<idle_server> idle = *rt.spawn<idle_server>({.name = "idle"});
  const ref<busy_server> busy = *rt.spawn<busy_server>({.name = "in_its_code"});
  const ref<waiting_server> waiting = *rt.spawn<waiting_server>({.name = "in_a_waiting_handler"});
  rt.send(with_other_mail, other{});
  rt.send(caller, introduction{in_receive});
  rt.send(first, introduction{second});
  rt.send(second, introduction{first});
  rt.cast<introduction>(waiting, in_receive);
  rt.cast<other>(busy);
  rt.cast<other>(busy);

  // A process that waits for a worker is not stuck yet.
  for (const pid p : {in_receive, with_other_mail, below, caller, first, second, sleeper, blocker, laner, performer,
                      promised, frozen, idle.id(), waiting.id()}) {
    for (auto seen = rt.info(p); !seen || seen->state != process_state::waiting || seen->waits.kind == wait_kind::none;
         seen = rt.info(p))
      std::this_thread::yield();
  }
  for (const pid p : {caller, first, second, waiting.id()})
    while (rt.info(p)->waits.kind != wait_kind::answer) std::this_thread::yield();
  while (rt.info(busy.id())->state != process_state::running) std::this_thread::yield();
  if (!rt.freeze(frozen)) return 1;
  for (const process_info& p : rt.snapshot()) std::cout << p.name << ": " << rt.why(p.id) << std::endl;
  all_are_stuck();

  (void)rt.thaw(frozen);
  of_operation->complete(1);
  of_future->complete(1);
  gate.release(4);
  return 0;
}
