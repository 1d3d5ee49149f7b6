// States of the kernel that were corrupted on purpose: the right invariant notices it, and says what it found.
#include <gtest/gtest.h>
#include <runtime/internal/kernel_parts.hpp>

#include <atomic>
#include <string>
#include <thread>

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/runtime.hpp>

#include "invariants.hpp"
#include "support.hpp"

namespace {

using namespace coppice;
using namespace detail;
using namespace std::chrono_literals;

/// The reason that a process ends with when `body` corrupts its own state.
std::string ends_with(task<> (*body)(self&)) { return run(body).to_string(); }

/// The reason of the first process that fails from here on.
class first_failure {
 public:
  explicit first_failure(runtime& rt) {
    const ref<collector> who = rt.spawn<collector>(seen_);
    rt.subscribe<process_ended>(who.id());
  }
  std::string reason() {
    while (!seen_->there) std::this_thread::yield();
    return seen_->reason;
  }

 private:
  struct seen {
    std::string reason;
    std::atomic<bool> there{false};
  };
  struct collector {
    using protocol = coppice::protocol<process_ended>;
    explicit collector(std::shared_ptr<seen> s) : into{std::move(s)} {}
    void handle(const process_ended& e) const {
      if (into->there || !e.reason.abnormal()) return;
      into->reason = e.reason.to_string();
      into->there = true;
    }
    std::shared_ptr<seen> into;
  };
  std::shared_ptr<seen> seen_ = std::make_shared<seen>();
};

struct ping {};
task<> sleeper(self& me) { co_await me.sleep(1h); }

TEST(kernel_invariant, a_slot_with_a_process_is_not_handed_out) {
  runtime rt{{.workers = 1, .processes = 1, .level = log_level::off}};
  rt.host().table()[1].set(slot::has_process, true);
  expect_found(broken_by([&] { rt.spawn(sleeper); }), "a slot was handed out that still has a process");
  rt.host().table()[1].set(slot::has_process, false);
}

TEST(kernel_invariant, a_process_ends_once) {
  runtime rt{quiet()};
  slot& p = rt.host().table()[rt.host().table().take()];
  expect_found(broken_by([&] { rt.host().parts().lifecycle.finish(p, exit_reason::normal(), nullptr, nullptr); }),
               "a process ends that has ended already");
}

TEST(kernel_invariant, only_an_abandoned_process_is_buried) {
  runtime rt{quiet()};
  slot& p = rt.host().table()[rt.host().table().take()];
  expect_found(broken_by([&] { rt.host().bury(p, nullptr, true); }), "a process comes back that was not abandoned");
}

TEST(kernel_invariant, only_signals_of_links_and_monitors_are_applied) {
  runtime rt{quiet()};
  slot& p = rt.host().table()[rt.host().table().take()];
  letter<ping> message{&plain<ping>};
  message.tag = envelope::tag_of(p.serial(), signal::message);
  expect_found(broken_by([&] { rt.host().parts().links.apply(p, message); }),
               "a signal that belongs to no link or monitor was applied as one");
}

task<> reuses_a_monitor_number(self& me) {
  const pid other = me.spawn(sleeper);
  me.monitor(other);
  --me.process().side->refs;
  me.monitor(other);
  co_return;
}
TEST(kernel_invariant, a_monitor_has_a_number_of_its_own) {
  expect_found(ends_with(reuses_a_monitor_number), "a new monitor has the number of another one");
}

TEST(kernel_invariant, the_mark_of_the_fast_lane_stays_in_place) {
  runtime rt{quiet()};
  slot& p = rt.host().table()[rt.host().table().take()];
  letter<ping> message{&plain<ping>};
  message.tag = envelope::tag_of(p.serial(), signal::message);
  side_of(rt.host().table(), p).seen = &message;
  expect_found(broken_by([&] { fast_lane::unmark(p); }), "the mark of the fast lane was overwritten");
  free_side(p);
}

struct stubborn {};
task<> has_a_fast_lane(self& me) {
  me.process().set(slot::has_fast_lane, true);
  static constexpr message_type fixed{
      .name = "stubborn", .size = sizeof(letter<stubborn>), .drop = &drop_body<stubborn>};
  me.send(me.id(), ping{});
  me.host().send_fast(me.id(), make_letter<stubborn>(fixed));
  const ping p = co_await me.receive<ping>();
  (void)p;
}
TEST(kernel_invariant, a_signal_of_the_fast_lane_can_be_moved_in_its_queue) {
  expect_found(ends_with(has_a_fast_lane), "a signal of the fast lane can't be moved within its queue");
}

TEST(kernel_invariant, a_start_letter_makes_a_body) {
  runtime rt{quiet()};
  first_failure end{rt};
  static constexpr message_type type{
      .name = "empty start",
      .size = sizeof(start_letter),
      .drop = [](kernel&, envelope& e, loss) { std::destroy_at(&static_cast<start_letter&>(e).with); },
      .object = {.deliver = [](body&, turn&, envelope&) {}}};
  auto* first = ::new (allocate(sizeof(start_letter))) start_letter{&type, birth{}};
  const result<pid> started = rt.host().start(first);
  ASSERT_TRUE(started.has_value());
  expect_found(end.reason(), "a start letter has made no body");
}

TEST(kernel_invariant, a_frozen_process_is_run_by_nobody) {
  runtime rt{quiet()};
  const pid who = rt.spawn(sleeper);
  ASSERT_TRUE(rt.freeze(who).has_value());
  first_failure end{rt};
  rt.host().schedule(rt.host().table()[who.index()]);
  expect_found(end.reason(), "a frozen process is run although the freezer owns it");
}

TEST(kernel_invariant, blocking_work_ends_as_often_as_it_begins) {
  runtime rt{quiet()};
  const pid who = rt.spawn(sleeper);
  expect_found(broken_by([&] { rt.host().parts().freezer.blocking_over(who); }),
               "blocking work ends that has not begun");
}

task<> links_over_a_connection_that_is_not_there(self& me) {
  const leaks_expected leaks;
  const pid far = pid::from_parts(node_id{1'000'000}, 1, 0);
  me.host().send(far, signal::link, make_letter<link_signal>(plain<link_signal>, me.id(), connection_number{5}));
  co_return;
}
TEST(kernel_invariant, a_connection_has_a_transport) {
  expect_found(ends_with(links_over_a_connection_that_is_not_there), "a connection without a transport");
}

}  // namespace
