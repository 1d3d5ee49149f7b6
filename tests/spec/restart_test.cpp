// Which deaths are answered by a restart, how many are too many, and how things are called.
#include <gtest/gtest.h>

#include <coppice/spec/child_spec.hpp>
#include <coppice/spec/restart_window.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

// ---- the table

TEST(restart_table, permanent_is_always_restarted) {
  for (const exit_reason& why : {exit_reason::normal(), exit_reason::shutdown(), exit_reason::shutdown("done"),
                                 exit_reason::error("x"), exit_reason::killed(), exit_reason::abandoned()})
    EXPECT_EQ(decide(restart::permanent, why), after_exit::restart) << why;
}

TEST(restart_table, transient_is_restarted_after_an_abnormal_end_only) {
  for (const exit_reason& why : {exit_reason::normal(), exit_reason::shutdown(), exit_reason::shutdown("done")})
    EXPECT_EQ(decide(restart::transient, why), after_exit::keep) << why;
  for (const exit_reason& why : {exit_reason::error("x"), exit_reason::killed(), exit_reason::kill(),
                                 exit_reason::noproc(), exit_reason::noconnection(), exit_reason::abandoned()})
    EXPECT_EQ(decide(restart::transient, why), after_exit::restart) << why;
}

TEST(restart_table, temporary_is_never_restarted_and_forgotten) {
  for (const exit_reason& why :
       {exit_reason::normal(), exit_reason::shutdown(), exit_reason::error("x"), exit_reason::killed()})
    EXPECT_EQ(decide(restart::temporary, why), after_exit::forget) << why;
}

TEST(restart_table, is_known_at_compile_time) {
  static_assert(decide(restart::permanent, false) == after_exit::restart);
  static_assert(decide(restart::transient, true) == after_exit::restart);
  static_assert(decide(restart::transient, false) == after_exit::keep);
  static_assert(decide(restart::temporary, true) == after_exit::forget);
}

// ---- the window

constexpr time_point start{1000s};

TEST(restart_window, defaults_to_one_restart_in_five_seconds) {
  EXPECT_EQ(restart_limit{}, (restart_limit{.restarts = 1, .within = 5s}));
}

TEST(restart_window, tolerates_as_many_as_the_limit_says_and_not_one_more) {
  const restart_limit limit{.restarts = 3, .within = 5s};
  restart_window w;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.add(start, limit));
  EXPECT_FALSE(w.add(start, limit));
}

TEST(restart_window, with_a_limit_of_zero_does_not_tolerate_the_first) {
  restart_window w;
  EXPECT_FALSE(w.add(start, {.restarts = 0, .within = 1h}));
}

TEST(restart_window, one_that_is_as_old_as_the_time_still_counts) {
  const restart_limit limit{.restarts = 1, .within = 5s};
  restart_window w;
  EXPECT_TRUE(w.add(start, limit));
  EXPECT_FALSE(w.add(start + 5s, limit));
}

TEST(restart_window, one_that_is_older_by_a_nanosecond_does_not) {
  const restart_limit limit{.restarts = 1, .within = 5s};
  restart_window w;
  EXPECT_TRUE(w.add(start, limit));
  EXPECT_TRUE(w.add(start + 5s + 1ns, limit));
  EXPECT_FALSE(w.add(start + 10s + 1ns, limit)) << "the second one counts from its own time on";
}

TEST(restart_window, slides_and_is_not_cut_into_pieces) {
  const restart_limit limit{.restarts = 2, .within = 10s};
  restart_window w;
  EXPECT_TRUE(w.add(start + 0s, limit));
  EXPECT_TRUE(w.add(start + 9s, limit));
  EXPECT_TRUE(w.add(start + 11s, limit)) << "the first is too old";
  EXPECT_FALSE(w.add(start + 18s, limit)) << "those at 9 and 11 s are not";
}

TEST(restart_window, wider_apart_than_the_time_goes_on_for_ever) {
  const restart_limit limit{.restarts = 1, .within = 5s};
  restart_window w;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(w.add(start + i * (5s + 1ns), limit));
  EXPECT_LE(w.size(), 2U) << "and keeps no more than it needs";
}

TEST(restart_window, follows_a_limit_that_changes) {
  restart_window w;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.add(start, {.restarts = 5, .within = 5s}));
  EXPECT_FALSE(w.add(start + 1s, {.restarts = 2, .within = 5s}));
  EXPECT_TRUE(w.add(start + 2s, {.restarts = 1, .within = 500ms}));
}

// ---- words

TEST(spec_words, name_what_they_stand_for) {
  EXPECT_EQ(to_string(restart::permanent), "permanent");
  EXPECT_EQ(to_string(restart::transient), "transient");
  EXPECT_EQ(to_string(restart::temporary), "temporary");
  EXPECT_EQ(to_string(child_type::worker), "worker");
  EXPECT_EQ(to_string(child_type::supervisor), "supervisor");
  EXPECT_EQ(to_string(auto_shutdown::never), "never");
  EXPECT_EQ(to_string(auto_shutdown::any_significant), "any_significant");
  EXPECT_EQ(to_string(auto_shutdown::all_significant), "all_significant");
}

TEST(spec_words, of_times_are_as_people_write_them) {
  EXPECT_EQ(to_string(0ns), "0s");
  EXPECT_EQ(to_string(1ns), "1ns");
  EXPECT_EQ(to_string(999ns), "999ns");
  EXPECT_EQ(to_string(std::chrono::nanoseconds{1us}), "1us");
  EXPECT_EQ(to_string(std::chrono::nanoseconds{20ms}), "20ms");
  EXPECT_EQ(to_string(std::chrono::nanoseconds{1500ms}), "1.5s");
  EXPECT_EQ(to_string(std::chrono::nanoseconds{5s}), "5s");
  EXPECT_EQ(to_string(std::chrono::nanoseconds{59s}), "59s");
  EXPECT_EQ(to_string(std::chrono::nanoseconds{2min}), "2min");
  EXPECT_EQ(to_string(std::chrono::nanoseconds{90min}), "1.5h");
  EXPECT_EQ(to_string(std::chrono::nanoseconds{48h}), "48h");
  EXPECT_EQ(to_string(std::chrono::nanoseconds{-1500ms}), "-1.5s");
  EXPECT_EQ(to_string(std::chrono::nanoseconds::max()), "forever");
}

TEST(spec_words, of_the_shortest_time_there_is) {
  EXPECT_EQ(to_string(std::chrono::nanoseconds::min()).substr(0, 1), "-") << "it has no opposite";
}

TEST(spec_words, of_shutdowns) {
  EXPECT_EQ(to_string(shutdown{5s}), "5s");
  EXPECT_EQ(to_string(shutdown{0s}), "0s");
  EXPECT_EQ(to_string(shutdown::brutal_kill()), "brutal_kill");
  EXPECT_EQ(to_string(shutdown::infinity()), "infinity");
}

TEST(shutdown_kinds, are_told_apart) {
  static_assert(shutdown{5s}.time() == 5s);
  static_assert(!shutdown{0s}.is_brutal(), "asked first, then killed at once");
  static_assert(shutdown{0s} != shutdown::brutal_kill());
  static_assert(shutdown::brutal_kill().is_brutal());
  static_assert(shutdown::infinity().is_infinite());
  static_assert(shutdown::infinity().time() == std::chrono::nanoseconds::max());
  static_assert(default_shutdown(child_type::worker) == shutdown{5s});
  static_assert(default_shutdown(child_type::supervisor) == shutdown::infinity());
}

}  // namespace
