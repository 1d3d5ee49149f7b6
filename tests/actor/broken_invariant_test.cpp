// States that are corrupted on purpose: the right `ensure` fires, and ends the actor that it concerns and no other.
#include <gtest/gtest.h>

#include <coppice/actor/detail/actor_signal.hpp>

#include "stage.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::theatre;
namespace signals = detail::signals;

/// The text of the `ensure` that fires in `corrupt`.
template <class F>
std::string text_of(F corrupt) {
  try {
    corrupt();
  } catch (const broken_invariant& x) {
    return x.what();
  }
  return "nothing was found";
}
void expect_found(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find("broken invariant: " + part), std::string::npos) << text;
}

// ---- signals that no correct actor sends

void expect_end_by(detail::actor_signal forged, const std::string& found) {
  stage s;
  s.root("p");
  s.child("p", "a");
  s.child("p", "b");
  detail::send_signal(s.rt().host(), s.who("a"), std::move(forged));
  s.settle();
  expect_found(s.end_of("a"), found);
  EXPECT_EQ(s.end_of("p"), "lives");
  EXPECT_EQ(s.said("b"), 0) << "and its sibling takes mail";
}

TEST(broken_actor, was_resumed_more_often_than_suspended) {
  expect_end_by({signals::resume{}}, "an actor was resumed more often than it was suspended");
}

TEST(broken_actor, was_restarted_as_an_older_instance) {
  expect_end_by({signals::restart{.instance = 0}}, "a restart has the number of an older instance");
}

TEST(broken_actor, was_restarted_to_end_a_suspension_that_it_does_not_have) {
  expect_end_by({signals::restart{.instance = 1, .was_suspended = true}},
                "an actor was resumed more often than it was suspended");
}

TEST(broken_actor, got_a_mail_token_without_a_mailbox_policy) {
  stage s;
  s.root("a");
  s.rt().host().push_actor_token(s.who("a"));
  s.settle();
  expect_found(s.end_of("a"), "a mail token reached an actor without a mailbox policy");
}

// ---- states that no correct actor has

[[nodiscard]] detail::actor_core& core_of(stage& s, const std::string& name) {
  return static_cast<detail::actor_core&>(*s.rt().host().table()[s.who(name).index()].process);
}

TEST(broken_actor, handles_two_messages_at_once) {
  stage s;
  s.root("a");
  detail::envelope other{nullptr};
  s.act("a", [&](player&, context& me) {
    core_of(s, "a").mail_in_hand = &other;
    me.stash(say{"too much"});
    me.unstash_all();
  });
  expect_found(s.end_of("a"), "an actor handles two messages at once");
}

TEST(broken_actor, puts_mail_aside_again_that_it_has_taken_from_there) {
  stage s;
  s.root("a");
  detail::send_signal(s.rt().host(), s.who("a"), signals::suspend{});
  s.settle();
  s.tell("a", [&](player&, context&) { core_of(s, "a").aside.replaying = false; });
  poison_actor(s.rt(), s.who("a"));
  s.tell("a", "behind the pill");
  s.settle();
  EXPECT_EQ(core_of(s, "a").aside.size(), 3U);
  detail::send_signal(s.rt().host(), s.who("a"), signals::resume{});
  s.settle();
  expect_found(s.end_of("a"), "mail from outside of the queue was put aside again");
}

TEST(broken_actor, ends_with_its_children_and_nobody_is_asked) {
  stage s;
  s.root("a");
  s.child("a", "b");
  s.act("a", [](player&, context&) { ensure(false, "found in a handler"); });
  expect_found(s.end_of("a"), "found in a handler");
  EXPECT_EQ(s.end_of("b").find("lives"), std::string::npos) << "children do not outlive their parent";
  EXPECT_TRUE(s.answers().empty()) << "a restart would keep the broken state, so nobody is asked";
}

// ---- the parts of an actor

TEST(broken_part, a_counter_falls_below_zero) {
  detail::guarded_counter c{1};
  expect_found(text_of([&] { c.lower(2, "one too many"); }), "one too many");
  EXPECT_EQ(c.value(), 1U) << "and is left as it was";
}

constexpr detail::actor_class some_class{};

TEST(broken_part, an_event_reaches_a_state_that_does_not_have_it) {
  detail::life_status s{some_class, 0};
  expect_found(text_of([&] { (void)s.change(detail::life_event::started); }),
               "the event started reached an actor that is unborn");
}

TEST(broken_part, room_is_made_for_more_messages_than_wait) {
  detail::life_status s{some_class, 0};
  expect_found(text_of([&] { s.remove_messages_without_room(1); }),
               "a receiver has made room for more messages than were waiting");
  detail::room_waits r;
  r.add_message(pid{})->messages = detail::guarded_counter{0};
  expect_found(text_of([&] { (void)r.remove_message(pid{}); }),
               "a receiver has made room for more messages than it had refused");
}

TEST(broken_part, a_child_is_added_or_removed_twice) {
  detail::child_table t;
  t.add({.who = pid{}});
  expect_found(text_of([&] { t.add({.who = pid{}}); }), "a child was added twice");
  (void)t.remove(pid{});
  expect_found(text_of([&] { (void)t.remove(pid{}); }), "a child was removed twice");
}

TEST(broken_part, a_process_is_watched_twice_or_ends_twice) {
  detail::watch_list w;
  w.add(pid{}, monitor_ref{1});
  expect_found(text_of([&] { w.add(pid{}, monitor_ref{2}); }), "a process was watched twice");
  EXPECT_TRUE(w.note_ended(pid{}, monitor_ref{1}));
  expect_found(text_of([&] { (void)w.note_ended(pid{}, monitor_ref{1}); }), "a watched process ended twice");
}

TEST(broken_part, two_futures_have_one_number) {
  detail::pending_futures f;
  f.add_answer(std::make_shared<detail::future_state<int>>());
  expect_found(text_of([&] { f.add_answer(std::make_shared<detail::future_state<int>>()); }),
               "two pending futures of an actor have the same number");
  f.add_end(monitor_ref{1}, std::make_shared<detail::future_state<int>>());
  expect_found(text_of([&] { f.add_end(monitor_ref{1}, std::make_shared<detail::future_state<int>>()); }),
               "two futures wait for the same monitor");
}

TEST(broken_part, two_timers_have_one_number) {
  stage s;
  s.root("a");
  detail::instance_timers timers;
  const auto add = [&] {
    timers.add(s.rt().host(), s.who("a"), 1, 1h, {}, detail::make_letter<say>(detail::plain<say>, "too much"));
  };
  add();
  expect_found(text_of(add), "two timers of an actor have the same number");
}

TEST(broken_part, an_envelope_is_put_aside_twice) {
  detail::life_status owner{some_class, 0};
  detail::aside_mail aside{owner};
  detail::envelope e{nullptr};
  aside.add(&e);
  expect_found(text_of([&] { aside.add(&e); }), "no envelope was put aside, or the same one twice");
  expect_found(text_of([&] { aside.add_first(&e); }), "no envelope was put aside, or the same one twice");
  EXPECT_EQ(aside.size(), 1U);
}

}  // namespace
