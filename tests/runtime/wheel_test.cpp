// The timer wheels, driven by hand: their ticks are numbers here, and no clock runs.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "runtime/internal/timers.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;
using detail::envelope;
using detail::wheel;

struct fired {
  int id;
};
/// Where the wheel's letters go; tells in which order they came.
struct collector {
  struct take {
    using reply = std::vector<int>;
  };
  using protocol = coppice::protocol<fired, take>;
  void handle(fired f) { seen.push_back(f.id); }
  std::vector<int> handle(take) { return std::exchange(seen, {}); }
  std::vector<int> seen;
};

class wheel_test : public testing::Test {
 protected:
  envelope* letter(int id) const {
    auto* e = detail::make_letter<fired>(detail::plain<fired>, id);
    e->tag = envelope::tag_of(sink.id().serial(), detail::signal::message);
    return e;
  }
  wheel::armed arm(wheel& w, wheel::tick due, int id) const { return w.arm(due, time_point{}, sink.id(), letter(id)); }
  void advance(wheel& w, wheel::tick now) {
    std::vector<std::pair<pid, envelope*>> abroad;
    w.advance(now, rt.host(), abroad);
    EXPECT_TRUE(abroad.empty());
  }
  static void drop(envelope* e) {
    (void)detail::take_body<fired>(*e);
    detail::release(e);
  }
  std::vector<int> fired_so_far() { return rt.call(sink.call<collector::take>()).value(); }

  runtime rt{{.workers = 1, .level = log_level::off}};
  ref<collector> sink = rt.spawn<collector>();
};

TEST_F(wheel_test, a_timer_fires_at_its_tick_and_not_before) {
  wheel w{0};
  arm(w, 10, 1);
  advance(w, 9);
  EXPECT_EQ(fired_so_far(), std::vector<int>{});
  advance(w, 10);
  EXPECT_EQ(fired_so_far(), std::vector<int>{1});
  EXPECT_EQ(w.size(), 0U);
}

TEST_F(wheel_test, a_timer_in_the_past_fires_at_the_next_tick) {
  wheel w{100};
  arm(w, 3, 1);
  advance(w, 100);
  EXPECT_EQ(fired_so_far(), std::vector<int>{});
  advance(w, 101);
  EXPECT_EQ(fired_so_far(), std::vector<int>{1});
}

TEST_F(wheel_test, timers_of_one_tick_fire_in_the_order_they_were_armed) {
  // Near ones wait in the lowest level, far ones come down through one, two, three or four others.
  for (const wheel::tick due : {5ULL, 300ULL, 70'000ULL, 20'000'000ULL, 5'000'000'000ULL}) {
    wheel w{0};
    for (int i = 0; i < 5; ++i) arm(w, due, i);
    advance(w, due);
    EXPECT_EQ(fired_so_far(), (std::vector<int>{0, 1, 2, 3, 4})) << "due at " << due;
  }
}

TEST_F(wheel_test, one_armed_late_fires_after_those_armed_early_for_the_same_tick) {
  wheel w{0};
  arm(w, 300, 1);
  arm(w, 300, 2);
  advance(w, 280);  // they have come down to the lowest level
  arm(w, 300, 3);
  advance(w, 300);
  EXPECT_EQ(fired_so_far(), (std::vector<int>{1, 2, 3}));
}

TEST_F(wheel_test, a_cancelled_timer_gives_its_letter_back_and_never_fires) {
  wheel w{0};
  const auto a = arm(w, 10, 1);
  arm(w, 10, 2);
  envelope* e = w.disarm(a.index, a.generation);
  ASSERT_NE(e, nullptr);
  drop(e);
  EXPECT_EQ(w.disarm(a.index, a.generation), nullptr);
  advance(w, 10);
  EXPECT_EQ(fired_so_far(), std::vector<int>{2});
}

TEST_F(wheel_test, an_old_name_never_meets_a_new_timer_in_the_same_place) {
  wheel w{0};
  const auto old = arm(w, 10, 1);
  drop(w.disarm(old.index, old.generation));
  const auto young = arm(w, 10, 2);
  EXPECT_EQ(young.index, old.index);
  EXPECT_NE(young.generation, old.generation);
  EXPECT_EQ(w.disarm(old.index, old.generation), nullptr);
  EXPECT_EQ(w.due_of(old.index, old.generation), std::nullopt);
  EXPECT_TRUE(w.due_of(young.index, young.generation).has_value());
  EXPECT_EQ(w.disarm(young.index + 1000, 0), nullptr);
  advance(w, 10);
  EXPECT_EQ(fired_so_far(), std::vector<int>{2});
}

TEST_F(wheel_test, a_timer_beyond_the_horizon_waits_for_its_time) {
  constexpr wheel::tick far = wheel::tick{1} << 45U;  // a thousand years of milliseconds
  wheel w{12'345};
  arm(w, far, 1);
  arm(w, far + 1, 2);
  advance(w, far - 1);
  EXPECT_EQ(fired_so_far(), std::vector<int>{});
  advance(w, far);
  EXPECT_EQ(fired_so_far(), std::vector<int>{1});
  advance(w, far + 1);
  EXPECT_EQ(fired_so_far(), std::vector<int>{2});
}

TEST_F(wheel_test, next_never_lies_behind_the_first_timer_and_is_nothing_without_one) {
  wheel w{0};
  EXPECT_EQ(w.next(), std::nullopt);
  for (const wheel::tick due : {1ULL, 255ULL, 256ULL, 257ULL, 65'536ULL, 1ULL << 32U, 1ULL << 41U}) {
    const auto t = arm(w, due, 0);
    ASSERT_TRUE(w.next().has_value());
    EXPECT_LE(*w.next(), due);
    EXPECT_GT(*w.next(), 0U);
    drop(w.disarm(t.index, t.generation));
    EXPECT_EQ(w.next(), std::nullopt);
  }
}

/// What a wheel does, done simply: letters by due tick, and in the order of arming within one.
struct model {
  std::multimap<wheel::tick, int> pending;
  std::vector<int> advance(wheel::tick now) {
    std::vector<int> out;
    const auto last = pending.upper_bound(now);
    for (auto at = pending.begin(); at != last; ++at) out.push_back(at->second);
    pending.erase(pending.begin(), last);
    return out;
  }
  bool cancel(int id) {
    for (auto at = pending.begin(); at != pending.end(); ++at) {
      if (at->second != id) continue;
      pending.erase(at);
      return true;
    }
    return false;
  }
};

/// A delay of any order of magnitude, from one tick to beyond the lower levels.
wheel::tick some_delay(std::mt19937_64& random) { return random() % (wheel::tick{1} << (1 + random() % 36)); }

TEST_F(wheel_test, any_mix_of_arming_cancelling_and_advancing_agrees_with_the_model) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    std::mt19937_64 random{seed};
    wheel::tick now = random() % (wheel::tick{1} << 40U);
    wheel w{now};
    model expected;
    std::map<int, wheel::armed> names;
    for (int step = 0; step < 1500; ++step) {
      const auto what = random() % 10;
      if (what < 6) {
        const wheel::tick due = now + some_delay(random);
        names[step] = arm(w, due, step);
        expected.pending.emplace(std::max(due, now + 1), step);
      } else if (what < 8 && !names.empty()) {
        const auto at = std::next(names.begin(), static_cast<std::ptrdiff_t>(random() % names.size()));
        envelope* e = w.disarm(at->second.index, at->second.generation);
        ASSERT_EQ(e != nullptr, expected.cancel(at->first)) << "seed " << seed << ", step " << step;
        if (e != nullptr) drop(e);
        names.erase(at);
      } else {
        now += some_delay(random) / 4 + 1;
        advance(w, now);
        ASSERT_EQ(fired_so_far(), expected.advance(now)) << "seed " << seed << ", step " << step;
      }
      ASSERT_EQ(w.size(), expected.pending.size());
      if (!expected.pending.empty()) {
        ASSERT_LE(*w.next(), expected.pending.begin()->first);
        ASSERT_GT(*w.next(), now);
      }
    }
    std::vector<envelope*> left;
    w.take_all(left);
    std::ranges::for_each(left, drop);
    EXPECT_EQ(w.size(), 0U);
  }
}

TEST_F(wheel_test, all_wheels_together_never_fire_early_and_at_most_a_tick_late) {
  const time_point origin{std::chrono::hours{5}};
  detail::timers all{rt.host(), 3, origin};
  for (std::size_t i = 0; i < 3; ++i) all.arm(i, origin + 1500us, sink.id(), letter(static_cast<int>(i)));
  EXPECT_EQ(all.size(), 3U);
  EXPECT_EQ(all.next(), origin + 2ms);
  all.advance(origin + 1999us);
  EXPECT_EQ(fired_so_far(), std::vector<int>{});
  all.advance(origin + 2ms);
  EXPECT_EQ(fired_so_far().size(), 3U);
  EXPECT_EQ(all.next(), std::nullopt);
}

TEST_F(wheel_test, a_ref_finds_its_timer_in_any_wheel_and_a_made_up_one_finds_nothing) {
  const time_point origin{};
  detail::timers all{rt.host(), 4, origin};
  std::vector<timer_ref> refs;
  for (std::size_t i = 0; i < 40; ++i)
    refs.push_back(all.arm(i % 4, origin + 1s * static_cast<int>(i), sink.id(), letter(static_cast<int>(i))));
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(all.due_of(refs[i]), origin + 1s * static_cast<int>(i));
    envelope* e = all.disarm(refs[i]);
    ASSERT_NE(e, nullptr);
    EXPECT_EQ(static_cast<detail::letter<fired>*>(e)->body.id, static_cast<int>(i));
    drop(e);
    EXPECT_EQ(all.disarm(refs[i]), nullptr);
  }
  for (const std::uint64_t n : {0ULL, 5ULL, 1023ULL, ~0ULL}) EXPECT_EQ(all.disarm(timer_ref{n}), nullptr);
  EXPECT_EQ(all.size(), 0U);
}

}  // namespace
