// Event buses: handlers that come and go, fail, and belong to somebody.
#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>

#include <coppice/behaviour/event_bus.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace test;

struct order {
  std::string what;
  int count = 0;
};
using bus = event_bus<order>;

/// What the handlers of a test did, in order.
using diary = std::vector<std::string>;

struct total {
  using reply = int;
};
struct fail_now {
  using reply = void;
};

class sums {
 public:
  explicit sums(diary* d, std::string name = "sums") : diary_{d}, name_{std::move(name)} {}
  void handle(const order& o) {
    sum_ += o.count;
    diary_->push_back(name_ + " " + o.what);
  }
  int handle(total) const { return sum_; }
  void handle(fail_now) { throw std::runtime_error{"as told"}; }
  void terminate(const exit_reason& why) { diary_->push_back(name_ + " ends: " + why.to_string()); }

 private:
  diary* diary_;
  std::string name_;
  int sum_ = 0;
};
class breaks_at {
 public:
  breaks_at(diary* d, std::string what) : diary_{d}, what_{std::move(what)} {}
  void handle(const order& o, self&) {
    if (o.what == what_) throw std::runtime_error{"not " + o.what};
    diary_->push_back("breaks_at saw " + o.what);
  }

 private:
  diary* diary_;
  std::string what_;
};
class first_only {
 public:
  first_only(self& me, diary* d) : bus_{me.id()}, diary_{d} {}
  handling handle(const order& o, self& me) {
    EXPECT_EQ(me.id(), bus_);
    diary_->push_back("first " + o.what);
    return handling::remove_me;
  }

 private:
  pid bus_;
  diary* diary_;
};
struct impossible {
  impossible() { throw std::runtime_error{"no disk"}; }
  void handle(const order&) {}
};
struct silent {
  void handle(const order&) {}
};

task<> handlers_come_and_go(self& me) {
  diary d;
  const auto orders = me.spawn_link<bus>();
  const result<void> a = co_await add_handler<sums>(orders, "a", &d, "a");
  const result<void> b = co_await add_handler<sums>(orders, "b", &d, "b");
  EXPECT_TRUE(a && b);
  const result<void> again = co_await add_handler<silent>(orders, "a");
  EXPECT_EQ(again.error().code(), errc::duplicate_id);
  const result<std::vector<std::string>> both = co_await which_handlers(orders);
  EXPECT_EQ(both, (std::vector<std::string>{"a", "b"}));
  notify(orders, order{"tea", 2});
  const order cups{"cups", 3};
  const result<void> seen = co_await sync_notify(orders, cups);
  EXPECT_TRUE(seen.has_value());
  EXPECT_EQ(d, (diary{"a tea", "b tea", "a cups", "b cups"})) << "after a sync_notify all have seen it";
  const result<void> gone = co_await remove_handler(orders, "a");
  EXPECT_TRUE(gone.has_value());
  const result<void> twice = co_await remove_handler(orders, "a");
  EXPECT_EQ(twice.error().code(), errc::not_found);
  const result<void> last = co_await sync_notify(orders, cups);
  EXPECT_EQ(d, (diary{"a tea", "b tea", "a cups", "b cups", "a ends: normal", "b cups"}));
}
TEST(event_bus, all_handlers_see_each_event_in_the_order_they_were_added) {
  EXPECT_EQ(in_the_world(handlers_come_and_go), exit_reason::normal());
}

class names_its_bus {
 public:
  explicit names_its_bus(pid* into) : into_{into} {}
  void handle(const order&) {}
  void terminate(const exit_reason&, self& me) { *into_ = me.id(); }

 private:
  pid* into_;
};
task<> a_handler_terminates_with_me(self& me) {
  pid ended_in;
  const auto orders = me.spawn_link<bus>();
  const result<void> added = co_await add_handler<names_its_bus>(orders, "a", &ended_in);
  const result<void> gone = co_await remove_handler(orders, "a");
  EXPECT_TRUE(added && gone);
  EXPECT_EQ(ended_in, orders.id());
}
TEST(event_bus, terminate_of_a_handler_may_take_the_self_of_the_bus) {
  EXPECT_EQ(in_the_world(a_handler_terminates_with_me), exit_reason::normal());
}

task<> a_handler_throws(self& me) {
  diary d;
  me.subscribe<handler_removed>();
  const auto orders = me.spawn_link<bus>();
  const result<void> a = co_await add_handler<breaks_at>(orders, "fragile", &d, "cups");
  const result<void> b = co_await add_handler<sums>(orders, "b", &d, "b");
  notify(orders, order{"tea", 1});
  notify(orders, order{"cups", 1});
  notify(orders, order{"milk", 1});
  const handler_removed r = co_await me.receive<handler_removed>();
  EXPECT_EQ(r.bus, orders.id());
  EXPECT_EQ(r.id, "fragile");
  EXPECT_EQ(r.reason.exception_type(), "std::runtime_error");
  EXPECT_EQ(r.reason.text(), "not cups");
  const result<std::vector<std::string>> left = co_await which_handlers(orders);
  EXPECT_EQ(left, std::vector<std::string>{"b"});
  EXPECT_EQ(d, (diary{"breaks_at saw tea", "b tea", "b cups", "b milk"})) << "the others go on";
}
TEST(event_bus, a_handler_that_throws_is_removed_and_reported_and_the_others_go_on) {
  EXPECT_EQ(in_the_world(a_handler_throws), exit_reason::normal());
}

task<> removes_itself(self& me) {
  diary d;
  const auto orders = me.spawn_link<bus>();
  const result<void> a = co_await add_handler<first_only>(orders, "a", &d);
  const result<void> b = co_await add_handler<sums>(orders, "b", &d, "b");
  notify(orders, order{"tea", 1});
  const order cups{"cups", 3};
  const result<void> seen = co_await sync_notify(orders, cups);
  EXPECT_EQ(d, (diary{"first tea", "b tea", "b cups"}));
}
TEST(event_bus, a_handler_may_ask_to_be_removed) { EXPECT_EQ(in_the_world(removes_itself), exit_reason::normal()); }

task<> calls_handlers(self& me) {
  diary d;
  const auto orders = me.spawn_link<bus>();
  const result<void> a = co_await add_handler<sums>(orders, "a", &d);
  const result<void> b = co_await add_handler<silent>(orders, "b");
  notify(orders, order{"tea", 2});
  notify(orders, order{"tea", 40});
  const result<int> sum = co_await call_handler<sums, total>(orders, "a");
  EXPECT_EQ(sum, 42);
  const result<int> nobody = co_await call_handler<sums, total>(orders, "c");
  EXPECT_EQ(nobody.error().code(), errc::not_found);
  const result<int> another = co_await call_handler<sums, total>(orders, "b");
  EXPECT_EQ(another.error().code(), errc::invalid);
  EXPECT_NE(another.error().text().find("is no"), std::string_view::npos) << another.error();
  const result<void> broken = co_await call_handler<sums, fail_now>(orders, "a");
  EXPECT_EQ(broken.error().code(), errc::exited);
  EXPECT_NE(broken.error().text().find("as told"), std::string_view::npos) << broken.error();
  const result<std::vector<std::string>> left = co_await which_handlers(orders);
  EXPECT_EQ(left, std::vector<std::string>{"b"}) << "it threw, so it is gone";
}
TEST(event_bus, one_handler_can_be_called) { EXPECT_EQ(in_the_world(calls_handlers), exit_reason::normal()); }

task<> cannot_be_made(self& me) {
  const auto orders = me.spawn_link<bus>();
  const result<void> a = co_await add_handler<impossible>(orders, "a");
  EXPECT_EQ(a.error().code(), errc::start_failed);
  EXPECT_NE(a.error().text().find("no disk"), std::string_view::npos) << a.error();
  const result<std::vector<std::string>> none = co_await which_handlers(orders);
  EXPECT_EQ(none, std::vector<std::string>{});
}
TEST(event_bus, a_handler_that_cannot_be_made_is_the_callers_trouble_only) {
  EXPECT_EQ(in_the_world(cannot_be_made), exit_reason::normal());
}

// ---- handlers that belong to somebody

struct end_now {};
task<> owns_a_handler(self& me, ref<bus> orders, diary* d, pid boss) {
  const result<void> a = co_await add_supervised_handler<sums>(orders, "mine", d, "mine");
  EXPECT_TRUE(a.has_value());
  me.send(boss, end_now{});
  const end_now now = co_await me.receive<end_now>();
  (void)now;
  co_await me.exit(exit_reason::shutdown("done"));
}
task<> owner_ends(self& me) {
  diary d;
  me.subscribe<handler_removed>();
  const auto orders = me.spawn_link<bus>();
  const pid owner = me.spawn(owns_a_handler, orders, &d, me.id());
  const end_now ready = co_await me.receive<end_now>();
  me.send(owner, ready);
  const handler_removed r = co_await me.receive<handler_removed>();
  EXPECT_EQ(r.id, "mine");
  EXPECT_EQ(r.reason, exit_reason::shutdown("done"));
  const result<std::vector<std::string>> none = co_await which_handlers(orders);
  EXPECT_EQ(none, std::vector<std::string>{});
  EXPECT_EQ(d, diary{"mine ends: " + exit_reason::shutdown("done").to_string()});
}
TEST(event_bus, a_supervised_handler_is_removed_when_its_process_ends) {
  EXPECT_EQ(in_the_world(owner_ends), exit_reason::normal());
}

task<> handler_ends(self& me) {
  diary d;
  const auto orders = me.spawn_link<bus>();
  const result<void> a = co_await add_supervised_handler<breaks_at>(orders, "a", &d, "cups");
  const result<void> b = co_await add_supervised_handler<sums>(orders, "b", &d, "b");
  notify(orders, order{"cups", 1});
  const handler_removed broken = co_await me.receive<handler_removed>();
  EXPECT_EQ(broken.id, "a");
  EXPECT_EQ(broken.reason.text(), "not cups");
  const result<void> out = co_await remove_handler(orders, "b");
  const handler_removed removed = co_await me.receive<handler_removed>();
  EXPECT_EQ(removed.id, "b");
  EXPECT_EQ(removed.reason, exit_reason::normal());
}
TEST(event_bus, who_added_a_supervised_handler_is_told_when_it_is_removed) {
  EXPECT_EQ(in_the_world(handler_ends), exit_reason::normal());
}

// ---- the log, and plain threads

class keeps_log final : public log_sink {
 public:
  void write(const log_record& r) override {
    const std::scoped_lock lock{mutex_};
    lines_.emplace_back(r.text);
    for (const log_field& f : r.fields) lines_.back() += " " + f.value;
  }
  [[nodiscard]] std::vector<std::string> lines() {
    const std::scoped_lock lock{mutex_};
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};
TEST(event_bus, is_used_from_plain_threads_and_logs_a_handler_that_throws) {
  const auto log = std::make_shared<keeps_log>();
  diary d;
  {
    runtime rt{runtime_options{.workers = 2, .log = log}};
    const auto orders = rt.spawn<bus>();
    EXPECT_TRUE(add_handler<breaks_at>(rt, orders, "fragile", &d, "cups").has_value());
    notify(rt, orders, order{"tea", 1});
    EXPECT_TRUE(sync_notify(rt, orders, order{"cups", 1}).has_value());
  }
  EXPECT_EQ(d, diary{"breaks_at saw tea"});
  const auto lines = log->lines();
  EXPECT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("event handler removed")) << lines[0];
  EXPECT_NE(lines[0].find("not cups"), std::string::npos) << lines[0];
}

}  // namespace
