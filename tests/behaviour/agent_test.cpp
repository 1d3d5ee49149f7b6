// Agents.
#include <map>
#include <stdexcept>
#include <string>

#include <coppice/behaviour/agent.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace test;

using scores = std::map<std::string, int>;

void add(scores& all, const std::string& who, int points) { all[who] += points; }
int of(const scores& all, const std::string& who) {
  const auto found = all.find(who);
  return found == all.end() ? 0 : found->second;
}
int take(scores& all, const std::string& who) {
  const int had = of(all, who);
  all.erase(who);
  return had;
}
int next(int n) { return n + 1; }

task<> works(self& me) {
  const auto points = me.spawn_link<agent<scores>>();
  const std::string anna = "somebody with a name that is too long for a small string";
  const result<void> noted = co_await agents::update(points, add, anna, 3);
  EXPECT_TRUE(noted.has_value());
  agents::cast(points, add, anna, 4);
  const result<int> seven = co_await agents::get(points, of, anna);
  EXPECT_EQ(seven, 7);
  const result<int> taken = co_await agents::get_and_update(points, take, anna);
  EXPECT_EQ(taken, 7);
  const result<int> none = co_await agents::get(points, of, anna);
  EXPECT_EQ(none, 0);
  const result<std::size_t> size = co_await agents::get(points, &scores::size);
  EXPECT_EQ(size, 0U);
}
TEST(agent, is_read_and_changed_by_functions) {
  EXPECT_EQ(in_the_world(works), exit_reason::normal());
  EXPECT_EQ(on_threads(works), exit_reason::normal());
}

task<> starts(self& me) {
  const auto number = me.spawn_link<agent<int>>(41);
  const result<void> up = co_await agents::update(number, next);
  EXPECT_TRUE(up.has_value());
  const result<int> n = co_await agents::get(number, [](int v) { return v; });
  EXPECT_EQ(n, 42);
  const auto made = me.spawn_link<agent<std::string>>(
      [](int times, char c) { return std::string(static_cast<std::size_t>(times), c); }, 3, 'x');
  const result<std::string> text = co_await agents::get(made, [](const std::string& s) { return s; });
  EXPECT_EQ(text, "xxx");
  const auto filled = me.spawn_link<agent<std::string>>(std::size_t{2}, 'y');
  const result<std::string> yy = co_await agents::get(filled, [](const std::string& s) { return s; });
  EXPECT_EQ(yy, "yy");
}
TEST(agent, begins_with_a_value_or_what_a_function_makes) { EXPECT_EQ(in_the_world(starts), exit_reason::normal()); }

int makes_trouble() { throw std::runtime_error{"no initial value"}; }
task<> fails_at_the_start(self& me) {
  const auto m = me.spawn_monitor<agent<int>>(makes_trouble);
  const down d = co_await me.receive<down>();
  EXPECT_EQ(d.who, m.who);
  EXPECT_EQ(d.reason.text(), "no initial value");
}
TEST(agent, whose_initial_function_throws_ends_with_that) {
  EXPECT_EQ(in_the_world(fails_at_the_start), exit_reason::normal());
}

int throws(const int&) { throw std::runtime_error{"out of luck"}; }
void throws_too(int&) { throw std::runtime_error{"out of luck"}; }
task<> fails(self& me, bool by_reading) {
  me.trap_exits();
  const auto a = me.spawn_link<agent<int>>(1);
  if (by_reading) {
    const result<int> r = co_await agents::get(a, throws);
    EXPECT_EQ(r.error().code(), errc::exited);
    EXPECT_NE(r.error().text().find("out of luck"), std::string_view::npos) << r.error();
  } else {
    const result<void> r = co_await agents::update(a, throws_too);
    EXPECT_EQ(r.error().code(), errc::exited);
  }
  const exited x = co_await me.receive<exited>();
  EXPECT_EQ(x.from, a.id());
  EXPECT_EQ(x.reason.text(), "out of luck");
  const result<int> gone = co_await agents::get(a, throws);
  EXPECT_EQ(gone.error().code(), errc::noproc);
  agents::cast(a, throws_too);  // never fails
}
TEST(agent, ends_with_what_a_function_throws_and_the_caller_gets_an_error) {
  EXPECT_EQ(in_the_world(fails, true), exit_reason::normal());
  EXPECT_EQ(in_the_world(fails, false), exit_reason::normal());
}

TEST(agent, is_used_from_plain_threads_too) {
  runtime rt{runtime_options{.workers = 2, .level = log_level::off}};
  const auto a = rt.spawn<agent<int>>(1);
  EXPECT_TRUE(rt.call(agents::update(a, next)).has_value());
  agents::cast(rt, a, [](int& n) { n *= 10; });
  EXPECT_EQ(rt.call(agents::get(a, [](int n, int m) { return n + m; }, 3)), 23);
  EXPECT_EQ(rt.call(agents::get_and_update(a, [](int& n) { return n++; })), 20);
  EXPECT_EQ(rt.call(agents::get(a, [](int n) { return n; })), 21);
}

task<> counts(self&, ref<agent<int>> a, int times) {
  for (int i = 0; i < times; ++i) {
    const result<void> r = co_await agents::update(a, next);
    EXPECT_TRUE(r.has_value());
  }
}
task<> count_together(self& me) {
  const auto a = me.spawn_link<agent<int>>(0);
  for (int i = 0; i < 4; ++i) me.spawn_monitor(counts, a, 1000);
  for (int i = 0; i < 4; ++i) {
    const down d = co_await me.receive<down>();
    EXPECT_EQ(d.reason, exit_reason::normal());
  }
  const result<int> all = co_await agents::get(a, [](int n) { return n; });
  EXPECT_EQ(all, 4000);
}
TEST(agent, loses_no_update_of_many_processes) { EXPECT_EQ(on_threads(count_together), exit_reason::normal()); }

}  // namespace
