// Receiving: by type, in order of arrival, with a time limit, and whatever the messages are made of.
#include <gtest/gtest.h>

#include <any>
#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct apple {
  int n = 0;
};
struct pear {
  int n = 0;
};
struct stop {};

// ---- by type

task<> takes_by_type(self& me) {
  me.send(me.id(), apple{1});
  me.send(me.id(), pear{2});
  me.send(me.id(), apple{3});
  const pear p = co_await me.receive<pear>();
  EXPECT_EQ(p.n, 2);
  const apple first = co_await me.receive<apple>();
  const apple second = co_await me.receive<apple>();
  EXPECT_EQ(first.n, 1);
  EXPECT_EQ(second.n, 3);
}
TEST(receive, takes_the_oldest_message_of_its_type_and_leaves_the_others) {
  EXPECT_EQ(run(takes_by_type), exit_reason::normal());
}

task<> takes_either(self& me) {
  me.send(me.id(), 'x');
  me.send(me.id(), pear{1});
  me.send(me.id(), apple{2});
  const std::variant<apple, pear> first = co_await me.receive<apple, pear>();
  const auto* p = std::get_if<pear>(&first);
  EXPECT_TRUE(p != nullptr && p->n == 1);
  const std::variant<apple, pear> second = co_await me.receive<apple, pear>();
  const auto* a = std::get_if<apple>(&second);
  EXPECT_TRUE(a != nullptr && a->n == 2);
}
TEST(receive, of_several_types_takes_the_oldest_of_any_of_them) { EXPECT_EQ(run(takes_either), exit_reason::normal()); }

task<> keeps_the_order(self& me) {
  for (int i = 0; i < 100; ++i) {
    me.send(me.id(), apple{i});
    me.send(me.id(), pear{i});
  }
  me.send(me.id(), stop{});
  co_await me.receive<stop>();  // all the others are put aside
  for (int i = 0; i < 100; i += 2) {
    const pear p = co_await me.receive<pear>();
    EXPECT_EQ(p.n, i / 2);
  }
  me.send(me.id(), apple{100});
  for (int i = 0; i <= 100; ++i) {
    const apple a = co_await me.receive<apple>();
    EXPECT_EQ(a.n, i);
  }
  for (int i = 50; i < 100; ++i) {
    const pear p = co_await me.receive<pear>();
    EXPECT_EQ(p.n, i);
  }
}
TEST(receive, messages_put_aside_keep_their_order_and_come_before_newer_ones) {
  EXPECT_EQ(run(keeps_the_order), exit_reason::normal());
}

task<> takes_from_the_middle(self& me) {
  me.send(me.id(), apple{1});
  me.send(me.id(), pear{1});
  me.send(me.id(), 'm');
  me.send(me.id(), apple{2});
  me.send(me.id(), 1.5);
  co_await me.receive<double>();
  co_await me.receive<char>();
  co_await me.receive<pear>();
  const apple first = co_await me.receive<apple>();
  const apple second = co_await me.receive<apple>();
  EXPECT_EQ(first.n + second.n * 10, 21);
  me.send(me.id(), pear{9});
  const pear last = co_await me.receive<pear>();
  EXPECT_EQ(last.n, 9);
}
TEST(receive, a_message_may_be_taken_from_anywhere_among_those_put_aside) {
  EXPECT_EQ(run(takes_from_the_middle), exit_reason::normal());
}

// ---- order

task<> send_numbers(self& me, pid to, int sender, int count) {
  for (int i = 0; i < count; ++i) {
    std::pair<int, int> m{sender, i};
    me.send(to, std::move(m));
    if (i % 100 == 0) co_await me.yield();
  }
}
task<> expects_order_of_each(self& me) {
  constexpr int senders = 4;
  constexpr int count = 5000;
  for (int s = 0; s < senders; ++s) me.spawn(send_numbers, me.id(), s, count);
  std::array<int, senders> next{};
  for (int i = 0; i < senders * count; ++i) {
    const auto [sender, number] = co_await me.receive<std::pair<int, int>>();
    EXPECT_EQ(number, next[static_cast<std::size_t>(sender)]++);
  }
}
TEST(receive, messages_of_one_sender_come_in_the_order_they_were_sent) {
  EXPECT_EQ(run(expects_order_of_each), exit_reason::normal());
}

// ---- time

task<> times_out(self& me) {
  me.send(me.id(), pear{1});
  const std::variant<apple, timed_out> got = co_await me.receive<apple>(1ms);
  EXPECT_TRUE(std::holds_alternative<timed_out>(got));
  const pear kept = co_await me.receive<pear>();
  EXPECT_EQ(kept.n, 1);
}
TEST(receive, gives_up_after_its_time_and_loses_nothing) { EXPECT_EQ(run(times_out), exit_reason::normal()); }

task<> gets_it_in_time(self& me) {
  for (const std::chrono::nanoseconds limit :
       {std::chrono::nanoseconds{1h}, std::chrono::nanoseconds{24h * 365 * 200}, forever, forever - 1ns}) {
    me.send(me.id(), apple{1});
    const std::variant<apple, timed_out> got = co_await me.receive<apple>(limit);
    EXPECT_TRUE(std::holds_alternative<apple>(got)) << limit.count();
  }
}
TEST(receive, takes_what_comes_within_its_time_however_long_that_is) {
  EXPECT_EQ(run(gets_it_in_time), exit_reason::normal());
}

task<> many_limits(self& me) {
  for (int i = 0; i < 50; ++i) {
    const auto limit = i % 2 == 0 ? std::chrono::nanoseconds{1h} : std::chrono::nanoseconds{1ms};
    if (i % 2 == 0) me.send(me.id(), apple{i});
    const auto got = co_await me.receive<apple>(limit);
    EXPECT_EQ(got.index(), i % 2 == 0 ? 0U : 1U) << i;
  }
}
TEST(receive, long_and_short_limits_in_turn_do_not_disturb_each_other) {
  EXPECT_EQ(run(many_limits), exit_reason::normal());
}

task<> zero_takes_queued(self& me) {
  me.send(me.id(), pear{1});
  me.send(me.id(), apple{2});
  const auto queued = co_await me.receive<apple>(0ns);
  const auto* a = std::get_if<apple>(&queued);
  EXPECT_TRUE(a != nullptr && a->n == 2);
  const auto kept = co_await me.receive<pear>(0ns);
  EXPECT_TRUE(std::holds_alternative<pear>(kept));
  const auto none = co_await me.receive<apple, pear>(0ns);
  EXPECT_TRUE(std::holds_alternative<timed_out>(none));
  const auto negative = co_await me.receive<apple>(-5s);
  EXPECT_TRUE(std::holds_alternative<timed_out>(negative));
}
TEST(receive, with_zero_time_takes_what_is_there_and_does_not_wait) {
  EXPECT_EQ(run(zero_takes_queued), exit_reason::normal());
}

task<> sleeps_over_mail(self& me) {
  me.send(me.id(), apple{1});
  co_await me.sleep(1ms);
  const auto got = co_await me.receive<apple>(0ns);
  EXPECT_TRUE(std::holds_alternative<apple>(got));
  co_await me.sleep(0ns);
}
TEST(sleep, mail_waits_meanwhile) { EXPECT_EQ(run(sleeps_over_mail), exit_reason::normal()); }

// ---- anything

task<> takes_anything(self& me) {
  me.send(me.id(), apple{1});
  me.send(me.id(), std::string{"text"});
  me.send(me.id(), pear{2});
  std::variant<pear, any_message> first = co_await me.receive<pear, any_message>();
  auto* any = std::get_if<any_message>(&first);
  EXPECT_TRUE(any != nullptr);
  if (any == nullptr) co_return;
  EXPECT_EQ(any->type(), type_name<apple>());
  EXPECT_EQ(any->get_if<pear>(), nullptr);
  EXPECT_EQ(any->get_if<apple>()->n, 1);
  any_message second = co_await me.receive<any_message>();
  EXPECT_EQ(*second.get_if<std::string>(), "text");
  std::variant<pear, any_message> third = co_await me.receive<pear, any_message>();
  EXPECT_EQ(third.index(), 0U);
}
TEST(receive, any_message_takes_whatever_no_type_before_it_takes) {
  EXPECT_EQ(run(takes_anything), exit_reason::normal());
}

task<> takes_anything_kept(self& me) {
  me.send(me.id(), apple{1});
  me.send(me.id(), stop{});
  co_await me.receive<stop>();
  any_message kept = co_await me.receive<any_message>();
  EXPECT_EQ(kept.type(), type_name<apple>());
  any_message moved = std::move(kept);
  EXPECT_EQ(moved.get_if<apple>()->n, 1);
}
TEST(receive, any_message_takes_messages_that_were_put_aside) {
  EXPECT_EQ(run(takes_anything_kept), exit_reason::normal());
}

// ---- what messages may be

struct without_default {
  explicit without_default(int n) : number{n} {}
  int number;
};
struct large {
  std::array<char, 5000> text{};
  std::string more;
};

task<> receives_all_kinds(self& me) {
  me.send(me.id(), std::make_unique<int>(5));
  const auto moved = co_await me.receive<std::unique_ptr<int>>();
  EXPECT_EQ(*moved, 5);

  me.send(me.id(), without_default{6});
  const auto made = co_await me.receive<without_default>();
  EXPECT_EQ(made.number, 6);

  large big;
  big.text.fill('z');
  big.more = "a text too long for any small buffer of a string";
  me.send(me.id(), big);
  const auto same = co_await me.receive<large>();
  EXPECT_EQ(same.text, big.text);
  EXPECT_EQ(same.more, big.more);
}
TEST(receive, messages_may_be_large_move_only_or_without_a_default) {
  EXPECT_EQ(run(receives_all_kinds), exit_reason::normal());
}

task<> receives_vectors_of_any(self& me) {
  std::vector<std::any> three{1, 2, 3};
  me.send(me.id(), three);
  const auto same = co_await me.receive<std::vector<std::any>>();
  EXPECT_EQ(same.size(), 3U);
}
TEST(receive, a_message_that_could_also_be_an_element_of_itself_arrives_as_it_was_sent) {
  EXPECT_EQ(run(receives_vectors_of_any), exit_reason::normal());
}

task<> sends_a_copy(self& me) {
  const auto shared = std::make_shared<int>(1);
  me.send(me.id(), shared);
  EXPECT_EQ(shared.use_count(), 2);
  std::string text = "a text too long for any small buffer of a string";
  me.send(me.id(), text);
  text.clear();
  const auto got = co_await me.receive<std::string>();
  EXPECT_EQ(got, "a text too long for any small buffer of a string");
  const auto again = co_await me.receive<std::shared_ptr<int>>();
  EXPECT_EQ(shared.use_count(), 2);
  EXPECT_EQ(again, shared);
}
TEST(send, copies_what_the_sender_keeps) { EXPECT_EQ(run(sends_a_copy), exit_reason::normal()); }

task<> leaves_mail_unread(self& me, std::shared_ptr<int> watched) {
  me.send(me.id(), watched);
  me.send(me.id(), stop{});
  me.send(me.id(), watched);
  co_await me.receive<stop>();  // one is put aside, one is still in the queue
}
TEST(receive, mail_that_is_left_over_is_destroyed_with_its_process) {
  auto watched = std::make_shared<int>(1);
  EXPECT_EQ(run(leaves_mail_unread, watched), exit_reason::normal());
  EXPECT_EQ(watched.use_count(), 1);
}

/// Throws when it is moved a second time: into the envelope it goes, out of it it does not.
struct stays_where_it_is {
  explicit stays_where_it_is(std::atomic<int>* alive) : live{alive} { ++*live; }
  stays_where_it_is(stays_where_it_is&& other)
      : live{other.live}, moves{other.moves + 1} {  // NOLINT(performance-noexcept-move-constructor): it does throw
    if (moves > 1) throw std::runtime_error{"glued"};
    ++*live;
  }
  stays_where_it_is& operator=(stays_where_it_is&&) = delete;
  ~stays_where_it_is() { --*live; }
  std::atomic<int>* live;
  int moves = 0;
};
task<> receives_glue(self& me, std::atomic<int>* live) {
  me.send(me.id(), stays_where_it_is{live});
  co_await me.receive<stays_where_it_is>();
}
TEST(receive, a_message_that_throws_on_its_way_out_ends_the_receiver_and_is_destroyed) {
  std::atomic<int> live{0};
  const exit_reason why = run(receives_glue, &live);
  EXPECT_EQ(why.text(), "glued");
  EXPECT_EQ(live, 0);
}

}  // namespace
