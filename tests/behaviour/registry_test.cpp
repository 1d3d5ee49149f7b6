// Registries: entries, listeners, and what happens when their owners end.
#include <algorithm>
#include <string>
#include <variant>

#include <coppice/behaviour/registry.hpp>
#include <coppice/behaviour/server.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace test;

using names = registry<std::string, int>;
using groups = registry<std::string, int, registry_keys::duplicate>;

struct ready {
  bool ok = true;
};
struct end_now {};
struct hello {
  int n;
};
struct ask {
  using reply = int;
};

/// Has a key until it is told to end.
template <class Registry>
task<> holder(self& me, Registry in, std::string key, int value, pid boss) {
  const result<void> mine = in.register_as(me, key, value);
  me.send(boss, ready{mine.has_value()});
  for (;;) {
    auto m = co_await me.receive<end_now, request<ask>>();
    if (std::holds_alternative<end_now>(m)) co_return;
    std::get<request<ask>>(m).reply(value);
  }
}
template <class Registry>
task<pid> make_holder(self& me, Registry in, std::string key, int value) {
  const pid made = me.spawn(holder<Registry>, in, std::move(key), value, me.id());
  const ready r = co_await me.receive<ready>();
  EXPECT_TRUE(r.ok);
  co_return made;
}
task<> end_it(self& me, pid who) {
  me.send(who, end_now{});
  const exit_reason why = co_await end_of(me, who);
  (void)why;
}

// ---- unique keys

task<> registers(self& me) {
  const names all = names::spawn_link(me);
  const pid a = co_await make_holder(me, all, "a", 1);
  const result<void> mine = all.register_as(me, "mine", 2);
  EXPECT_TRUE(mine.has_value());
  EXPECT_EQ(all.where("a"), a);
  EXPECT_EQ(all.where("mine"), me.id());
  EXPECT_EQ(all.where("nobody's"), pid{});
  const auto found = all.lookup("a");
  EXPECT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].who, a);
  EXPECT_EQ(found[0].value, 1);
  EXPECT_EQ(all.keys_of(a), std::vector<std::string>{"a"});
  EXPECT_EQ(all.values("a", a), std::vector{1});
  EXPECT_TRUE(all.values("a", me.id()).empty());
  EXPECT_EQ(all.count(), 2U);
  EXPECT_EQ(all.count("a"), 1U);
}
TEST(registry, finds_what_was_registered) {
  EXPECT_EQ(in_the_world(registers), exit_reason::normal());
  EXPECT_EQ(on_threads(registers), exit_reason::normal());
}

task<> registers_twice(self& me) {
  const names all = names::spawn_link(me);
  const pid a = co_await make_holder(me, all, "a", 1);
  const result<void> taken = all.register_as(me, "a", 2);
  EXPECT_EQ(taken.error().code(), errc::name_taken);
  EXPECT_EQ(taken.error().text(), "registered by " + to_string(a) + " already");
  const result<void> mine = all.register_as(me, "b");
  const result<void> again = all.register_as(me, "b");
  EXPECT_TRUE(mine.has_value());
  EXPECT_EQ(again.error().code(), errc::name_taken);
  EXPECT_EQ(all.count(), 2U) << "a refusal leaves no trace";
  EXPECT_EQ(all.lookup("a")[0].value, 1);
}
TEST(registry, a_unique_key_belongs_to_one_live_process) {
  EXPECT_EQ(in_the_world(registers_twice), exit_reason::normal());
}

task<> is_refused(self& me, names all) {
  EXPECT_EQ(all.register_as(me, "a").error().code(), errc::name_taken);
  const end_now end = co_await me.receive<end_now>();
  (void)end;
}
TEST(registry, who_is_refused_is_not_linked) {
  sim::world w{3};
  runtime& rt = w.add_node().rt();
  const names all = names::spawn(rt);
  rt.spawn(holder<names>, all, "a", 1, pid{});
  w.run();
  const pid refused = rt.spawn(is_refused, all);
  w.run();
  EXPECT_TRUE(rt.info(refused)->links.empty());
  EXPECT_TRUE(all.keys_of(refused).empty());
}

/// It has ended, but the keeper is stuck and was not notified.
task<> takes_over(self& me, names all, pid dead, pid* keeper) {
  *keeper = all.kept_by();
  co_await me.sleep(1s);
  me.send(dead, end_now{});
  co_await me.sleep(1s);
  EXPECT_FALSE(me.alive(dead));
  EXPECT_EQ(all.where("a"), pid{});
  EXPECT_TRUE(all.lookup("a").empty());
  EXPECT_EQ(all.count(), 0U);
  const result<void> mine = all.register_as(me, "a", 2);
  EXPECT_TRUE(mine.has_value());
  EXPECT_EQ(all.where("a"), me.id());
  co_await me.sleep(1h);  // the keeper comes back, and is notified
  EXPECT_EQ(all.where("a"), me.id());
  EXPECT_EQ(all.keys_of(me.id()), std::vector<std::string>{"a"});
}
TEST(registry, an_entry_of_the_dead_is_replaced_on_the_spot) {
  pid keeper;
  sim::world w{3};
  sim::node& n = w.add_node();
  const names all = names::spawn(n.rt());
  const pid dead = n.rt().spawn(holder<names>, all, "a", 1, pid{});
  w.run_for(1ms);
  const pid p = n.rt().spawn(takes_over, all, dead, &keeper);
  w.run_for(100ms);
  n.stick(keeper, 10min);
  w.run_for(2h);
  EXPECT_FALSE(n.rt().alive(p)) << "it waits";
}

task<> sees_ends(self& me) {
  const names all = names::spawn_link(me);
  const pid a = co_await make_holder(me, all, "a", 1);
  const pid b = co_await make_holder(me, all, "b", 2);
  co_await end_it(me, a);
  EXPECT_EQ(all.where("a"), pid{}) << "whoever hears of the end can use the key";
  EXPECT_EQ(all.count(), 1U);
  me.kill(b);
  const exit_reason killed = co_await end_of(me, b);
  EXPECT_EQ(all.count(), 0U);
  EXPECT_TRUE(all.keys_of(a).empty()) << "also before the keeper has removed them";
  EXPECT_TRUE(all.keys_of(b).empty());
  const pid next = co_await make_holder(me, all, "a", 3);
  EXPECT_EQ(all.where("a"), next);
}
TEST(registry, entries_vanish_with_their_process) {
  EXPECT_EQ(in_the_world(sees_ends), exit_reason::normal());
  EXPECT_EQ(on_threads(sees_ends), exit_reason::normal());
}

task<> unregisters(self& me) {
  const names all = names::spawn_link(me);
  const pid other = co_await make_holder(me, all, "other", 1);
  const result<void> mine = all.register_as(me, "mine", 2);
  EXPECT_EQ(all.unregister(me, "mine"), 1U);
  EXPECT_EQ(all.unregister(me, "mine"), 0U);
  EXPECT_EQ(all.unregister(me, "other"), 0U) << "own entries only";
  EXPECT_EQ(all.where("other"), other);
  EXPECT_EQ(all.where("mine"), pid{});
  EXPECT_TRUE(all.keys_of(me.id()).empty());
}
TEST(registry, unregister_is_idempotent_and_for_own_entries_only) {
  EXPECT_EQ(in_the_world(unregisters), exit_reason::normal());
}

task<> unregisters_some(self& me) {
  const names all = names::spawn_link(me);
  EXPECT_TRUE(all.register_as(me, "a", 1).has_value());
  all.add_listener(me.id());
  EXPECT_EQ(all.unregister_if(me, "a", [](int n) { return n == 2; }), 0U);
  EXPECT_EQ(all.where("a"), me.id());
  EXPECT_EQ(all.unregister_if(me, "a", [](int n) { return n == 1; }), 1U);
  EXPECT_EQ(all.where("a"), pid{});
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 1) << "listeners hear of what was unregistered only";
}
TEST(registry, unregister_if_takes_only_what_its_predicate_wants) {
  EXPECT_EQ(in_the_world(unregisters_some), exit_reason::normal());
}

task<> updates(self& me) {
  const names all = names::spawn_link(me);
  const pid other = co_await make_holder(me, all, "other", 1);
  (void)other;
  const result<void> mine = all.register_as(me, "mine", 2);
  const auto done = all.update_value(me, "mine", [](int n) { return n * 10; });
  EXPECT_EQ(done->now, 20);
  EXPECT_EQ(done->before, 2);
  EXPECT_EQ(all.lookup("mine")[0].value, 20);
  EXPECT_FALSE(all.update_value(me, "other", [](int n) { return n * 10; }));
  EXPECT_FALSE(all.update_value(me, "nobody's", [](int n) { return n * 10; }));
  EXPECT_EQ(all.lookup("other")[0].value, 1);
}
TEST(registry, a_process_updates_the_value_of_its_own_key) { EXPECT_EQ(in_the_world(updates), exit_reason::normal()); }

// ---- via

task<> goes_via(self& me) {
  const names all = names::spawn_link(me);
  const auto a = all.via("a");
  const result<int> nobody = co_await call<ask>(a);
  EXPECT_EQ(nobody.error().code(), errc::noproc);
  me.send(a, hello{1});  // goes to nobody, without harm
  const pid first = co_await make_holder(me, all, "a", 1);
  const result<int> one = co_await call<ask>(a);
  EXPECT_EQ(one, 1);
  co_await end_it(me, first);
  const result<int> none = co_await call<ask>(all.via("a"));
  EXPECT_EQ(none.error().code(), errc::noproc);
  const pid second = co_await make_holder(me, all, "a", 2);
  const result<int> two = co_await call<ask>(a);
  EXPECT_EQ(two, 2) << "it finds the successor";
  const monitor_ref ref = me.monitor(second);
  me.send(a, end_now{});
  const down over = co_await me.receive<down>();
  EXPECT_EQ(over.ref, ref);
  const result<void> mine = all.register_as(me, "me");
  me.send(all.via("me"), hello{7});
  const hello h = co_await me.receive<hello>();
  EXPECT_EQ(h.n, 7);
}
TEST(registry, a_via_key_stands_wherever_a_pid_does) { EXPECT_EQ(in_the_world(goes_via), exit_reason::normal()); }

/// A server that is known by a key.
class player {
 public:
  using protocol = coppice::protocol<ask>;
  player(names in, std::string key, int value) : in_{std::move(in)}, key_{std::move(key)}, value_{value} {}
  init_result init(self& me) {
    const result<void> mine = in_.register_as(me, key_, value_);
    return mine ? init_result::ok() : init_result::fail(mine.error());
  }
  [[nodiscard]] int handle(ask) const { return value_; }

 private:
  names in_;
  std::string key_;
  int value_;
};
task<> starts_players(self& me) {
  const names all = names::spawn_link(me);
  const std::string anna = "anna";
  const spawn_options linked{.link = true};
  const result<ref<player>> first = co_await start<player>(me, linked, all, anna, 1);
  EXPECT_EQ(all.where(anna), first->id());
  EXPECT_EQ(all.lookup(anna)[0].value, 1);
  const result<ref<player>> second = co_await start<player>(me, linked, all, anna, 2);
  EXPECT_EQ(second.error().code(), errc::name_taken);
  EXPECT_EQ(second.error().text(), "registered by " + to_string(first->id()) + " already");
  const result<int> one = co_await call<ask>(all.via(anna));
  EXPECT_EQ(one, 1);
  const result<void> over = co_await stop(me, *first);
  EXPECT_TRUE(over.has_value());
  const result<ref<player>> third = co_await start<player>(me, linked, all, anna, 3);
  const result<int> three = co_await call<ask>(all.via(anna));
  EXPECT_EQ(three, 3);
}
TEST(registry, a_server_registers_itself_when_it_starts_and_a_taken_key_is_a_failed_start) {
  EXPECT_EQ(in_the_world(starts_players), exit_reason::normal());
}

template <class R>
concept has_via = requires(const R& r) { r.via(std::string{}); };
template <class R>
concept has_update = requires(const R& r, self& me) { r.update_value(me, std::string{}, [](int n) { return n; }); };
static_assert(has_via<names> && has_update<names>);
static_assert(!has_via<groups> && !has_update<groups>, "a duplicate key names no single process");

// ---- duplicate keys

task<> registers_duplicates(self& me) {
  const groups all = groups::spawn_link(me);
  const pid a = co_await make_holder(me, all, "red", 1);
  const pid b = co_await make_holder(me, all, "red", 2);
  for (const int n : {3, 4, 4}) EXPECT_TRUE(all.register_as(me, "red", n).has_value());
  EXPECT_TRUE(all.register_as(me, "blue", 5).has_value());
  EXPECT_EQ(all.count("red"), 5U);
  EXPECT_EQ(all.values("red", me.id()), (std::vector{3, 4, 4}));
  EXPECT_EQ(all.keys_of(me.id()).size(), 2U);
  co_await end_it(me, a);
  EXPECT_EQ(all.count("red"), 4U);
  EXPECT_EQ(all.unregister_if(me, "red", [](int n) { return n == 4; }), 2U);
  EXPECT_EQ(all.values("red", me.id()), std::vector{3});
  EXPECT_EQ(all.keys_of(me.id()).size(), 2U);
  EXPECT_EQ(all.unregister(me, "red"), 1U);
  EXPECT_EQ(all.keys_of(me.id()), std::vector<std::string>{"blue"});
  EXPECT_EQ(all.lookup("red")[0].who, b);
}
TEST(registry, a_duplicate_key_has_many_entries_also_of_one_process) {
  EXPECT_EQ(in_the_world(registers_duplicates), exit_reason::normal());
}

using any_key = std::variant<int, std::string>;
task<> registers_under_any_key(self& me) {
  const auto all = registry<any_key, int, registry_keys::duplicate>::spawn_link(me);
  EXPECT_TRUE(all.register_as(me, any_key{1}, 10).has_value());
  EXPECT_TRUE(all.register_as(me, any_key{"1"}, 20).has_value());
  EXPECT_TRUE(all.register_as(me, any_key{"1"}, 30).has_value());
  EXPECT_EQ(all.values(any_key{1}, me.id()), std::vector{10});
  EXPECT_EQ(all.values(any_key{"1"}, me.id()), (std::vector{20, 30}));
  EXPECT_EQ(all.unregister(me, any_key{1}), 1U);
  EXPECT_EQ(all.count(any_key{1}), 0U);
  EXPECT_EQ(all.count(any_key{"1"}), 2U);
  co_return;
}
TEST(registry, keys_of_any_type_are_the_same_only_when_they_are_equal) {
  EXPECT_EQ(in_the_world(registers_under_any_key), exit_reason::normal());
}

task<> dispatches(self& me) {
  const groups all = groups::spawn_link(me);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(all.register_as(me, "red", i).has_value());
  int calls = 0;
  all.dispatch("red", [&](const std::vector<groups::entry>& those) {
    ++calls;
    for (const auto& e : those) me.send(e.who, hello{e.value});
  });
  all.dispatch("blue", [&](const std::vector<groups::entry>&) { ++calls; });
  EXPECT_EQ(calls, 1) << "not at all without entries";
  for (int i = 0; i < 3; ++i) {
    const hello h = co_await me.receive<hello>();
    EXPECT_EQ(h.n, i);
  }
}
TEST(registry, dispatch_calls_here_with_all_entries_of_the_key) {
  EXPECT_EQ(in_the_world(dispatches), exit_reason::normal());
}

task<> selects(self& me) {
  const groups all = groups::spawn_link(me);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(all.register_as(me, i % 2 == 0 ? "even" : "odd", i).has_value());
  const auto big = all.select([](const groups::row& r) { return r.key == "even" && r.value >= 90; });
  EXPECT_EQ(big.size(), 5U);
  EXPECT_TRUE(std::ranges::all_of(big, [&](const groups::row& r) { return r.who == me.id() && r.value >= 90; }));
  EXPECT_EQ(all.count(), 100U);
  co_return;
}
TEST(registry, select_gives_the_entries_that_a_predicate_wants) {
  EXPECT_EQ(in_the_world(selects), exit_reason::normal());
}

// ---- listeners

task<> listens(self& me) {
  const names all = names::spawn_link(me);
  all.add_listener(me.id());
  all.add_listener(me.id());  // once is enough
  const pid a = co_await make_holder(me, all, "a", 1);
  const auto came = co_await me.receive<names::registered>();
  EXPECT_EQ(came.in, all);
  EXPECT_EQ(came.key, "a");
  EXPECT_EQ(came.who, a);
  EXPECT_EQ(came.value, 1);
  EXPECT_TRUE(all.register_as(me, "b", 2).has_value());
  all.unregister(me, "b");
  const auto mine = co_await me.receive<names::registered>();
  const auto gone = co_await me.receive<names::unregistered>();
  EXPECT_EQ(mine.key, "b");
  EXPECT_EQ(gone.key, "b");
  EXPECT_EQ(gone.who, me.id());
  co_await end_it(me, a);
  co_await me.sleep(1s);
  all.remove_listener(me.id());
  EXPECT_TRUE(all.register_as(me, "c").has_value());
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0) << "no word of an end, and none after it listens no more";
}
TEST(registry, listeners_are_told_of_what_is_registered_and_unregistered) {
  EXPECT_EQ(in_the_world(listens), exit_reason::normal());
}

// ---- the keeper

task<> registers_and_stays(self& me, names in, std::string key, trap how, pid boss) {
  me.trap_exits(how);
  me.send(boss, ready{in.register_as(me, key, 1).has_value()});
  for (;;) {
    const exited x = co_await me.receive<exited>();
    me.send(boss, x);
  }
}
task<> loses_the_keeper(self& me) {
  const names all;
  const auto refused = all.register_as(me, "early");
  EXPECT_EQ(refused.error().code(), errc::noproc);
  const auto keeper = me.spawn<names::keeper>(all);
  co_await me.sleep(1ms);
  EXPECT_EQ(all.kept_by(), keeper.id());
  const pid plain = me.spawn(registers_and_stays, all, "plain", trap::off, me.id());
  const pid traps = me.spawn(registers_and_stays, all, "traps", trap::on, me.id());
  co_await me.sleep(1ms);
  EXPECT_EQ(all.count(), 2U);
  me.kill(keeper.id());
  const exited told = co_await me.receive<exited>();
  EXPECT_EQ(told.from, keeper.id());
  EXPECT_EQ(told.reason, exit_reason::killed());
  co_await me.sleep(1ms);
  EXPECT_FALSE(me.alive(plain)) << "who does not trap exits ends with the keeper";
  EXPECT_TRUE(me.alive(traps));
  EXPECT_EQ(all.count(), 0U) << "the entries are lost";
  EXPECT_EQ(all.register_as(me, "late").error().code(), errc::noproc);
  me.spawn_link<names::keeper>(all);  // as a supervisor does
  co_await me.sleep(1ms);
  EXPECT_TRUE(all.register_as(me, "plain").has_value());
  EXPECT_EQ(all.count(), 1U);
}
TEST(registry, lost_with_its_keeper_takes_registered_processes_along_and_begins_anew) {
  EXPECT_EQ(in_the_world(loses_the_keeper), exit_reason::normal());
}

task<> second_keeper(self& me) {
  const names all = names::spawn_link(me);
  const auto second = me.spawn_monitor<names::keeper>(all);
  const down d = co_await me.receive<down>();
  EXPECT_EQ(d.who, second.who);
  EXPECT_EQ(d.reason.exception_type(), "std::logic_error");
  EXPECT_TRUE(all.register_as(me, "a").has_value()) << "the first one goes on";
}
TEST(registry, has_one_keeper) { EXPECT_EQ(in_the_world(second_keeper), exit_reason::normal()); }

struct stay {};
task<> comes_and_goes(self& me, names in) {
  EXPECT_TRUE(in.register_as(me, "a").has_value());
  EXPECT_TRUE(in.register_as(me, "b").has_value());
  stay s = co_await me.receive<stay>();
  in.unregister(me, "a");
  s = co_await me.receive<stay>();
  in.unregister(me, "b");
  s = co_await me.receive<stay>();
}
TEST(registry, links_on_register_and_unlinks_with_the_last_key) {
  sim::world w{5};
  runtime& rt = w.add_node().rt();
  const names all = names::spawn(rt);
  const pid p = rt.spawn(comes_and_goes, all);
  w.run();
  EXPECT_EQ(rt.info(p)->links, std::vector{all.kept_by()});
  rt.send(p, stay{});
  w.run();
  EXPECT_EQ(rt.info(p)->links, std::vector{all.kept_by()});
  rt.send(p, stay{});
  w.run();
  EXPECT_TRUE(rt.info(p)->links.empty());
  EXPECT_TRUE(rt.info(all.kept_by())->links.empty());
  rt.exit(all.kept_by(), exit_reason::shutdown());
  w.run();
  EXPECT_FALSE(all.kept_by());
  EXPECT_TRUE(rt.alive(p)) << "no link, no end";
}

task<> of_another_runtime(self& me, names all, bool* refused) {
  *refused = all.register_as(me, "a").error().code() == errc::invalid;
  co_return;
}
TEST(registry, is_for_processes_of_its_own_runtime) {
  bool refused = false;
  sim::world w{5};
  const names all = names::spawn(w.add_node().rt());
  w.add_node().rt().run(of_another_runtime, all, &refused);
  EXPECT_TRUE(refused);
}

TEST(registry, outlives_its_runtime_without_entries) {
  names all;
  {
    sim::world w{5};
    runtime& rt = w.add_node().rt();
    all = names::spawn(rt);
    rt.spawn(comes_and_goes, all);
    w.run();
    EXPECT_EQ(all.count(), 2U);
  }
  EXPECT_EQ(all.count(), 0U);
  EXPECT_EQ(all.where("a"), pid{});
}

// ---- on threads

task<> fights_for_a_key(self& me, names all, int rounds, std::atomic<int>* held, std::atomic<int>* clashes) {
  for (int i = 0; i < rounds; ++i) {
    const bool mine = all.register_as(me, "the one", i).has_value();
    if (!mine) {
      co_await me.yield();
      continue;
    }
    if (held->fetch_add(1) != 0) clashes->fetch_add(1);
    if (all.where("the one") != me.id()) clashes->fetch_add(1);
    held->fetch_sub(1);
    all.unregister(me, "the one");
  }
}
task<> many_fight(self& me) {
  const names all = names::spawn_link(me);
  std::atomic<int> held{0};
  std::atomic<int> clashes{0};
  for (int i = 0; i < 8; ++i) me.spawn_monitor(fights_for_a_key, all, 2000, &held, &clashes);
  for (int i = 0; i < 8; ++i) {
    const down d = co_await me.receive<down>();
    EXPECT_EQ(d.reason, exit_reason::normal());
  }
  EXPECT_EQ(clashes, 0);
  EXPECT_EQ(all.count(), 0U);
}
TEST(registry, a_unique_key_is_unique_on_threads) { EXPECT_EQ(on_threads(many_fight), exit_reason::normal()); }

TEST(registry, is_not_stopped_by_a_message_that_looks_like_an_exit) {
  sim::world w{7};
  runtime& rt = w.add_node().rt();
  const names all = names::spawn(rt);
  ASSERT_TRUE(w.settle());
  const pid keeper = all.kept_by();
  rt.send(keeper, exited{.from = keeper, .reason = exit_reason::error("forged")});
  ASSERT_TRUE(w.settle());
  EXPECT_TRUE(rt.alive(keeper));
}

}  // namespace
