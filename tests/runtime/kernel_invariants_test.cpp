// States of the kernel that were corrupted on purpose: the right invariant notices it, and says what it found.
#include <gtest/gtest.h>
#include <runtime/internal/kernel_parts.hpp>

#include <atomic>
#include <latch>
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

// ---- private members, which an explicit instantiation may name

std::size_t& count_in(mailbox_policy& p);
std::atomic<std::uint32_t>& held_by(coroutine& c);
template <auto Member>
struct reach_count {
  friend std::size_t& count_in(mailbox_policy& p) { return p.*Member; }
};
template <auto Member>
struct reach_held {
  friend std::atomic<std::uint32_t>& held_by(coroutine& c) { return c.*Member; }
};
template struct reach_count<&mailbox_policy::size_>;
template struct reach_held<&coroutine::held_>;

TEST(kernel_invariant, a_mailbox_policy_counts_its_mail) {
  runtime rt{quiet()};
  mailbox_policy policy{{}, mailbox_policy::tokens::one};
  letter<ping>* mail = make_letter<ping>(plain<ping>);
  EXPECT_EQ(policy.put(rt.host(), {}, mail, {}).dropped, nullptr);
  count_in(policy) = 0;
  expect_found(broken_by([&] { (void)policy.take(rt.host(), {}); }), "a mailbox policy counts less mail than it has");
  discard(rt.host(), mail);
}

task<> reuses_a_timer_number(self& me) {
  const timer_ref first = me.start_timer(1h);
  me.cancel(first);
  const std::uint64_t next = first.value() + (std::uint64_t{1} << 40U);  // the same entry of the wheel, used again
  me.process().side->timers.insert(next, {});
  me.start_timer(1h);
  co_return;
}
TEST(kernel_invariant, a_timer_has_a_number_of_its_own) {
  expect_found(ends_with(reuses_a_timer_number), "a new timer has the number of another one");
}

struct wanted {};
/// Ways to take the first saved message that corrupt the saved mail before.
struct corrupting {
  static constexpr wait_type cuts_the_list{.take = [](waiter&, coroutine&, envelope& e) {
    e.next.store(nullptr, std::memory_order_relaxed);
    return true;
  }};
  static constexpr wait_type forgets_the_count{.take = [](waiter&, coroutine& me, envelope&) {
    held_by(me) = 0;
    return true;
  }};
};
template <const wait_type& how>
task<> takes_from_corrupted_mail(self& me) {
  {
    const leaks_expected leaks;
    me.send(me.id(), ping{});
    me.send(me.id(), ping{});
  }
  me.send(me.id(), wanted{});
  const wanted last = co_await me.receive<wanted>();  // both pings are saved
  (void)last;
  waiter first{&how};
  (void)static_cast<coroutine&>(me).take_saved(first);
}
TEST(kernel_invariant, the_saved_mail_ends_with_the_last_message) {
  expect_found(ends_with(takes_from_corrupted_mail<corrupting::cuts_the_list>),
               "the list of saved messages does not end with the last one");
}
TEST(kernel_invariant, the_saved_mail_is_counted) {
  expect_found(ends_with(takes_from_corrupted_mail<corrupting::forgets_the_count>),
               "more messages leave the saved mail than were put there");
}

task<> spawns_in_its_frozen_subtree(self& me, pid* child, std::latch* spawned) {
  const auto held = me.host().freeze({.root = me.id(), .subtree = true}, {});
  EXPECT_TRUE(held.has_value());
  *child = me.spawn_link(sleeper);
  spawned->count_down();
  co_await me.sleep(1h);
}
void kill_a_process_whose_start_letter_is_not_in_front() {
  pid child;
  std::latch spawned{1};
  runtime rt{quiet()};
  rt.spawn(spawns_in_its_frozen_subtree, &child, &spawned);
  spawned.wait();
  for (auto seen = rt.info(child); !seen || seen->state != process_state::frozen; seen = rt.info(child))
    std::this_thread::yield();
  rt.host().table()[child.index()].mail.head->become(signal::wake);
  rt.kill(child);
  rt.wait(child);
}
TEST(kernel_invariant_death_test, a_process_begins_with_its_start_letter) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(kill_a_process_whose_start_letter_is_not_in_front(),
               "a process without a body has mail in front of its start letter");
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
