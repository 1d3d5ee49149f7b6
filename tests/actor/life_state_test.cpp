// The table of an actor's life, in every combination of a state and an event.
#include <gtest/gtest.h>

#include <map>

#include <coppice/actor/detail/life_status.hpp>

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::detail;
using action = life_action;
using event = life_event;

constexpr std::array all_states{life::unborn,   life::creating,   life::running,
                                life::failed,   life::restarting, life::restarting_after_failure,
                                life::draining, life::stopping,   life::ended};
constexpr std::array all_events{event::begun,           event::started,         event::failed,
                                event::failure_resumed, event::restart_ordered, event::children_done,
                                event::drain_ordered,   event::stop_ordered};
static_assert(all_states.size() == life_count && all_events.size() == life_event_count);

/// Where each event leads from each state, one line for a state, in the order of `all_events`. "-" is forbidden, "."
/// has no effect.
struct line {
  life from;
  std::array<std::string_view, life_event_count> leads_to;
};
constexpr std::array expected{
    line{life::unborn, {"creating", "-", "-", "-", "-", "-", "-", "-"}},
    line{life::creating, {"-", "running", "failed", "-", "-", "-", "-", "stopping"}},
    line{life::running, {"-", "-", "failed", ".", "restarting", ".", "draining", "stopping"}},
    line{life::failed, {"-", "-", ".", "running", "restarting_after_failure", ".", "-", "stopping"}},
    line{life::restarting, {"-", "-", ".", ".", ".", "creating", "-", "stopping"}},
    line{life::restarting_after_failure, {"-", "-", ".", "restarting", ".", "creating", "-", "stopping"}},
    line{life::draining, {"-", "-", ".", ".", ".", "ended", "-", "stopping"}},
    line{life::stopping, {"-", "-", ".", ".", ".", "ended", "-", "stopping"}},
    line{life::ended, {"-", "-", ".", "-", "-", "-", "-", "."}},
};

TEST(life_of_an_actor, has_a_rule_for_each_event_that_can_happen_in_a_state) {
  for (const line& l : expected)
    for (std::size_t i = 0; i < all_events.size(); ++i) {
      const life_step step = step_of(l.from, all_events.at(i));
      const std::string where = std::string{to_string(l.from)} + " on " + std::string{to_string(all_events.at(i))};
      const std::string_view want = l.leads_to.at(i);
      if (want == "-") {
        EXPECT_EQ(step.action, action::forbidden) << where;
      } else if (want == ".") {
        EXPECT_EQ(step.action, action::ignore) << where;
        EXPECT_EQ(step.next, l.from) << where;
      } else {
        EXPECT_NE(step.action, action::forbidden) << where;
        EXPECT_NE(step.action, action::ignore) << where;
        EXPECT_EQ(to_string(step.next), want) << where;
      }
    }
}

TEST(life_of_an_actor, lists_no_combination_twice) {
  std::map<std::pair<life, event>, int> seen;
  for (const life_rule& r : life_rules) EXPECT_EQ(++seen[std::pair(r.from, r.on)], 1) << to_string(r.from);
}

TEST(life_of_an_actor, a_stop_and_the_end_of_the_last_child_have_these_actions) {
  // A stop tells the instance, unless that was told about a restart; the end of the last child ends a stop.
  for (const life from : {life::creating, life::running, life::failed})
    EXPECT_EQ(step_of(from, event::stop_ordered).action, action::begin_stop);
  for (const life from : {life::restarting, life::restarting_after_failure}) {
    EXPECT_EQ(step_of(from, event::stop_ordered).action, action::drop_and_stop);
    EXPECT_EQ(step_of(from, event::children_done).action, action::replace_instance);
  }
  for (const life from : {life::stopping, life::draining})
    EXPECT_EQ(step_of(from, event::children_done).action, action::end_process);
  EXPECT_EQ(step_of(life::draining, event::stop_ordered).action, action::hurry_children);
  EXPECT_EQ(step_of(life::stopping, event::stop_ordered).action, action::report_waiting);
}

constexpr actor_class some_class{};

TEST(life_status, takes_mail_only_while_it_runs_and_nothing_suspends_it) {
  life_status s{some_class, 1};
  EXPECT_FALSE(s.takes_mail());
  EXPECT_EQ(s.change(event::begun), action::create_instance);
  EXPECT_EQ(s.change(event::started), action::take_mail);
  EXPECT_FALSE(s.takes_mail()) << "it began with a suspension of its parent";
  s.end_suspensions(1);
  EXPECT_TRUE(s.takes_mail());
  s.add_message_without_room();
  EXPECT_FALSE(s.takes_mail());
  EXPECT_TRUE(s.decides()) << "a full receiver does not keep it from deciding";
  s.remove_messages_without_room(1);
  EXPECT_EQ(s.change(event::failed), action::report_failure);
  EXPECT_FALSE(s.takes_mail());
  EXPECT_EQ(s.suspensions(), 1U) << "its own failure counts as one";
  EXPECT_EQ(s.change(event::failure_resumed), action::take_mail);
  EXPECT_TRUE(s.takes_mail());
  EXPECT_EQ(s.suspensions(), 0U);
}

TEST(life_status, remembers_in_a_restart_whether_that_answers_a_failure) {
  life_status s{some_class, 0};
  (void)s.change(event::begun);
  (void)s.change(event::failed);
  EXPECT_EQ(s.change(event::restart_ordered), action::begin_restart);
  EXPECT_TRUE(s.failure_is_open());
  EXPECT_EQ(s.change(event::children_done), action::replace_instance);
  EXPECT_FALSE(s.failure_is_open());
  EXPECT_EQ(s.state(), life::creating);
}

}  // namespace
