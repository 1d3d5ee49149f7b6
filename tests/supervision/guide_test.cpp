// Code that pages of the guide quote.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <coppice/behaviour/agent.hpp>
#include <coppice/behaviour/named.hpp>
#include <coppice/sim/world.hpp>
#include <coppice/supervision/job_supervisor.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct database {
  inline static int failures = 0;
  database() {
    if (failures-- > 0) throw std::runtime_error{"locked"};
  }
};
struct web_server {};

supervisor_spec waits_for_its_database() {
  const child_options patient{.backoff = backoff{.first = 200ms, .cap = 10s}, .retry_first_start = true};
  return {.limit = {.restarts = 20, .within = 1min},
          .children = {child<database>().with(patient), child<web_server>()}};
}

int workers_in(const std::string& config) { return static_cast<int>(config.size()); }

struct pool_of_workers {
  static supervisor_spec init(const std::string& config) {
    supervisor_spec spec{.strategy = strategy::one_for_all};
    for (int i = 0; i < workers_in(config); ++i)
      spec.children.push_back(child<web_server>().with({.id = "worker " + std::to_string(i)}));
    return spec;
  }
};

TEST(guide_supervision, a_supervisor_type_makes_its_children_when_it_starts) {
  sim::world w{1};
  sim::node& n = w.add_node();
  const auto tree = start_supervisor(n.rt(), {.children = {child<pool_of_workers>("abc")}});
  ASSERT_TRUE(tree) << tree.error();
  const auto below = n.rt().call(which_child(*tree, "pool_of_workers"));
  EXPECT_EQ(n.rt().call(count_children(ref<supervisor>{below->who}))->active, 3U);
}

using scores = std::map<std::string, int>;
scores load_scores(const std::string& path);
int points_of(const scores& all, const std::string& who);
int count_words(const std::string& text);

supervisor_spec club() {
  return {.children = {
              child<agent<scores>>(load_scores, "scores.txt").with({.id = "scores", .name = "scores"}),
              child<job_supervisor>().with({.name = "jobs"}),
          }};
}

task<> uses_the_club(self& me) {
  const ref<agent<scores>> table = named<agent<scores>>{"scores"}.find(me);
  const result<int> anna = co_await agents::get(table, points_of, "anna");
  const ref<job_supervisor> jobs = named<job_supervisor>{"jobs"}.find(me);
  result<job<int>> counting = co_await async_under(me, jobs, count_words, "to be or not to be");
  if (!counting) co_return;
  const result<int> words = co_await counting->await();
  EXPECT_EQ(anna, 7);
  EXPECT_EQ(words, 6);
}

scores load_scores(const std::string& path) { return {{"anna", path == "scores.txt" ? 7 : 0}}; }
int points_of(const scores& all, const std::string& who) { return all.at(who); }
int count_words(const std::string& text) { return static_cast<int>(std::ranges::count(text, ' ')) + 1; }

TEST(guide_supervision, agents_and_jobs_are_children) {
  sim::world w{1};
  sim::node& n = w.add_node();
  const auto tree = start_supervisor(n.rt(), club());
  ASSERT_TRUE(tree) << tree.error();
  EXPECT_EQ(n.rt().run(uses_the_club), exit_reason::normal());
}

TEST(guide_supervision, a_supervisor_waits_for_its_database) {
  database::failures = 3;
  sim::world w{1};
  sim::node& n = w.add_node();
  const auto tree = start_supervisor(n.rt(), waits_for_its_database());
  ASSERT_TRUE(tree) << tree.error();
  EXPECT_EQ(n.rt().call(count_children(*tree))->active, 2U);
}

}  // namespace
