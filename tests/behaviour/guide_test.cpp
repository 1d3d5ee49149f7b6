// The code of docs/guide/behaviours.md, which quotes it.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <coppice/behaviour/agent.hpp>
#include <coppice/behaviour/async_stream.hpp>
#include <coppice/behaviour/event_bus.hpp>
#include <coppice/behaviour/interval.hpp>
#include <coppice/behaviour/jobs.hpp>
#include <coppice/behaviour/named.hpp>
#include <coppice/behaviour/registry.hpp>
#include <coppice/sim/world.hpp>

namespace coppice::guide {

using namespace std::chrono_literals;

/// Runs a body as a process of a simulated node; what it printed.
template <class F, class... Args>
std::string printed(F body, Args... args) {
  std::ostringstream text;
  std::streambuf* before = std::cout.rdbuf(text.rdbuf());
  sim::world w{1};
  const exit_reason why = w.add_node().rt().run(body, args...);
  std::cout.rdbuf(before);
  EXPECT_EQ(why, exit_reason::normal());
  return text.str();
}

// ---- jobs

int count_words(const std::string& text);            // a plain function: T f(args...)
task<std::string> fetch(self& me, std::string url);  // or one that waits: task<T> f(self&, args...)

task<> both(self& me, std::string text) {
  auto words = async_job(me, count_words, text);  // run from here on, each in its own process
  auto page = async_job(me, fetch, "https://example.org");
  const result<int> count = co_await words.await();
  const result<std::string> body = co_await page.await(30s);  // five seconds unless told
}

int count_words(const std::string& text) { return static_cast<int>(text.size()); }
task<std::string> fetch(self& me, std::string url) {
  co_await me.sleep(1s);
  co_return "page of " + url;
}
TEST(guide_jobs, give_their_results) { EXPECT_EQ(printed(both, std::string{"text"}), ""); }

task<> several(self& me, std::vector<std::string> texts) {
  std::vector<job<int>> jobs;
  for (const std::string& text : texts) jobs.push_back(async_job(me, count_words, text));

  const yield_options some{.timeout = 1s, .limit = 3, .rest = unfinished::kill};
  const std::vector<std::optional<result<int>>> first = co_await yield_many(jobs, some);
}

task<result<std::vector<int>>> all_of_them(self& me, std::vector<std::string> texts) {
  std::vector<job<int>> jobs;
  for (const std::string& text : texts) jobs.push_back(async_job(me, count_words, text));
  result<std::vector<int>> all = co_await await_many(jobs);  // or the first error, at once
  co_return all;
}

task<> prints_all_of_them(self& me, std::vector<std::string> texts) {
  const result<std::vector<int>> all = co_await all_of_them(me, texts);
  for (const int words : *all) std::cout << words << '\n';
}

TEST(guide_jobs, are_awaited_together) {
  EXPECT_EQ(printed(several, std::vector<std::string>{"a", "b"}), "");
  EXPECT_EQ(printed(prints_all_of_them, std::vector<std::string>{"a", "bb"}), "1\n2\n");
}

task<> all_pages(self& me, std::vector<std::string> urls) {
  auto pages = async_stream(me, urls, fetch, {.max_concurrency = 8, .timeout = 30s});
  for (;;) {
    const std::optional<result<std::string>> page = co_await pages.next();
    if (!page) break;
    if (*page) std::cout << **page << '\n';
  }
}

TEST(guide_stream, gives_one_result_after_the_other) {
  EXPECT_EQ(printed(all_pages, std::vector<std::string>{"a", "b"}), "page of a\npage of b\n");
}

// ---- agents

using scores = std::map<std::string, int>;

void add(scores& all, const std::string& who, int points) { all[who] += points; }
int points_of(const scores& all, const std::string& who) { return all.contains(who) ? all.at(who) : 0; }

task<> keeps_scores(self& me) {
  const ref<agent<scores>> table = me.spawn_link<agent<scores>>();
  const result<void> done = co_await agents::update(table, add, "anna", 3);
  agents::cast(table, add, "bert", 2);  // does not wait, never fails
  const result<int> anna = co_await agents::get(table, points_of, "anna").within(1s);
}

TEST(guide_agent, keeps_a_value) { EXPECT_EQ(printed(keeps_scores), ""); }

// ---- registries

using players = registry<std::string, int>;  // key, value; a key belongs to one process at a time

struct challenge {};
struct rating {
  using reply = int;
};

task<> player(self& me, players all, std::string name) {
  const result<void> mine = all.register_as(me, name, 1500);
  if (!mine) co_return;  // name_taken
  co_await me.receive<challenge>();
  const auto points = all.update_value(me, name, [](int before) { return before + 10; });
  auto ask = co_await me.receive<request<rating>>();
  ask.reply(points->now);
}

task<> visitor(self& me, players all) {
  me.send(all.via("anna"), challenge{});  // wherever a pid is wanted; a dead letter when nobody has the key
  const result<int> points = co_await call<rating>(all.via("anna"));
  for (const players::entry& e : all.lookup("anna")) std::cout << e.who << ' ' << e.value << '\n';
}

task<> club(self& me) {
  const players all = players::spawn_link(me);  // a value: copies mean the same registry
  me.spawn(player, all, "anna");
  me.spawn(visitor, all);
  co_await me.sleep(1h);
}

TEST(guide_registry, serves_players_and_visitors) { printed(club); }

// ---- event buses

struct order {
  std::string what;
};
struct how_many {
  using reply = int;
};

class counts_orders {
 public:
  void handle(const order&) { ++count_; }
  int handle(how_many) const { return count_; }

 private:
  int count_ = 0;
};

task<> shop(self& me) {
  const ref<event_bus<order>> orders = me.spawn_link<event_bus<order>>();
  const result<void> added = co_await add_handler<counts_orders>(orders, "counter");
  notify(orders, order{"tea"});  // does not wait
  order last{"cups"};
  const result<void> seen = co_await sync_notify(orders, std::move(last));  // all handlers have seen it
  const result<int> count = co_await call_handler<counts_orders, how_many>(orders, "counter");
  const result<void> removed = co_await remove_handler(orders, "counter");
}

TEST(guide_event_bus, shows_events_to_its_handlers) { EXPECT_EQ(printed(shop), ""); }

// ---- names, periodic work

struct librarian {
  struct open {};
  struct where_is {
    using reply = int;
    std::string title;
  };
  void handle(open) { ++opened; }
  [[nodiscard]] int handle(const where_is& m) const { return opened + static_cast<int>(m.title.size()); }
  int opened = 0;
};

task<> asks_by_name(self& me) {
  const named<librarian> desk{"librarian"};
  desk.cast<librarian::open>();
  const result<int> shelf = co_await desk.within(1s).call<librarian::where_is>("Moby-Dick");
  EXPECT_TRUE(me.where("librarian"));
  EXPECT_EQ(shelf, 10);
}

TEST(guide_named, is_found_at_each_use) {
  sim::world w{1};
  sim::node& n = w.add_node();
  ASSERT_TRUE(n.rt().spawn<librarian>({.name = "librarian"}));
  EXPECT_EQ(n.rt().run(asks_by_name), exit_reason::normal());
}

struct pulse {
  explicit pulse(self& me) : beat{me, 5s} {}
  void handle(timer_fired t, self& me) {
    if (beat.fired(me, t)) ++beats;
  }
  interval beat;
  int beats = 0;
};

TEST(guide_interval, beats_while_its_process_lives) {
  sim::world w{1};
  sim::node& n = w.add_node();
  const ref<pulse> heart = n.rt().spawn<pulse>();
  w.run_for(16s);
  EXPECT_TRUE(n.rt().alive(heart.id()));
}

}  // namespace coppice::guide
