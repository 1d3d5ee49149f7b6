// The code of the guide pages about processes, signals, time, scheduling and observation, which quote it.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <coppice/runtime/metrics.hpp>
#include <coppice/runtime/runtime.hpp>
#include <coppice/sim/world.hpp>

#include "recorder.hpp"

namespace coppice::guide {

using namespace std::chrono_literals;

/// Collects what is printed while it lives.
class captured {
 public:
  captured() : before_{std::cout.rdbuf(text_.rdbuf())} {}
  captured(const captured&) = delete;
  captured& operator=(const captured&) = delete;
  ~captured() { std::cout.rdbuf(before_); }
  [[nodiscard]] std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

// ---- processes and messages

struct hello {
  std::string who;
};
struct goodbye {};

task<> takes_orders(self& me) {
  const hello first = co_await me.receive<hello>();               // one type: the message itself
  const auto either = co_await me.receive<hello, goodbye>();      // several: a std::variant
  const auto in_time = co_await me.receive<hello>(5s);            // with a limit: a variant that ends in timed_out
  const auto at_once = co_await me.receive<hello>(0s);            // what is there already
  const auto rest = co_await me.receive<goodbye, any_message>();  // all other messages come as any_message
}

TEST(guide_receive, takes_what_is_wanted_and_leaves_the_rest) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  const pid p = rt.spawn(takes_orders);
  for (int i = 0; i < 4; ++i) rt.send(p, hello{"world"});
  rt.send(p, 42);
  w.run();
  EXPECT_FALSE(rt.alive(p));
}

TEST(guide_receive, a_limited_mailbox_drops_the_oldest) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  const spawn_options limited{.mailbox = {.capacity = 1000, .when_full = when_full::drop_oldest}};
  const result<pid> made = rt.spawn(limited, takes_orders);
  for (int i = 0; i < 1001; ++i) rt.send(*made, hello{"world"});
  EXPECT_EQ(rt.counters().dead_letters, 1U);
}

struct shop_counters {
  explicit shop_counters(metrics& m)
      : orders{m.counter({.name = "shop_orders", .help = "Orders received.", .labels = {{"kind", "web"}}})},
        stock{m.gauge({.name = "shop_stock"})},
        waits{m.histogram({.name = "shop_wait_seconds", .unit = "seconds"}, {0.1, 1, 10})} {}
  metric_counter orders;
  metric_gauge stock;
  metric_histogram waits;
};
task<> sells(self& me) {
  const shop_counters& count = metrics_of(me).of<shop_counters>();
  count.orders.add();
  count.stock.set(41);
  count.waits.observe(0.25);
  co_return;
}
std::string scrape(runtime& rt) { return metrics_of(rt).text(); }

TEST(guide_metrics, are_part_of_the_text) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  rt.spawn(sells);
  w.run();
  const std::string text = scrape(rt);
  EXPECT_NE(text.find("shop_orders_total{kind=\"web\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("shop_stock 41\n"), std::string::npos);
  EXPECT_NE(text.find("shop_wait_seconds_count 1\n"), std::string::npos);
}

class counter {
 public:
  struct bump {  // a call names its reply
    using reply = int;
    int by = 1;
  };
  struct reset {};  // a cast has none
  struct reach {    // answered once the counter is there
    using reply = void;
    int goal = 0;
  };

  explicit counter(int start) : value_{start} {}
  int handle(bump m) { return value_ += m.by; }
  void handle(reset) { value_ = 0; }
  void handle(reach m, reply_to<void> later) { waiting_.emplace_back(m.goal, std::move(later)); }
  void handle(const down&, self& me) { me.stop(exit_reason::shutdown("the other one is gone")); }

 private:
  int value_;
  std::vector<std::pair<int, reply_to<void>>> waiting_;
};

task<> client(self&, ref<counter> counters) {
  const result<int> n = co_await counters.call<counter::bump>(3);
  const result<int> quick = co_await counters.call<counter::bump>(3).within(100ms);
  if (!quick) std::cout << quick.error() << '\n';
  const result<void> there = co_await counters.call<counter::reach>(10).within(forever);
}

TEST(guide_call, gives_the_answer_or_an_error) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  const ref<counter> counters = rt.spawn<counter>(0);
  const captured out;
  const pid p = rt.spawn(client, counters);
  w.run_for(1s);
  EXPECT_TRUE(rt.alive(p)) << "it waits for the counter to reach 10, for ever";
  rt.cast<counter::reset>(counters);
  const result<int> n = rt.call(counters.call<counter::bump>(3));
  EXPECT_EQ(n, 3);
  EXPECT_EQ(out.text(), "");
}

struct square {
  using reply = int;
  int of = 0;
};

task<> squares(self& me) {
  for (;;) {
    auto ask = co_await me.receive<request<square>>();
    ask.reply(ask.message.of * ask.message.of);
  }
}

task<> asks(self& me) {
  const pid server = me.spawn_link(squares);
  const result<int> nine = co_await call<square>(server, 3);
}

TEST(guide_request, is_received_like_a_message_and_answered) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  const pid p = rt.spawn(asks);
  w.run();
  EXPECT_FALSE(rt.alive(p));
}

task<> registered(self& me) {
  const result<void> mine = me.register_as("database");
  if (!mine) co_await me.exit(exit_reason::error(mine.error().to_string()));
  me.label("connection to the orders");  // for people: in views and reports; need not be unique
  me.send("database", hello{"myself"});  // to whoever has the name now
  const pid owner = me.where("database");
  me.send(owner, hello{"the same"});
}

TEST(guide_name, reaches_the_process_that_has_it) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  const pid p = rt.spawn(registered);
  w.run();
  EXPECT_FALSE(rt.alive(p));
}

std::string read_file(const std::string& path);

task<> loads(self& me, std::string path) {
  const std::string text = co_await me.blocking(read_file, path);
  me.send(me.parent(), text);
}

std::string read_file(const std::string& path) { return "text of " + path; }

task<> wants_a_file(self& me, std::string* into) {
  me.spawn(loads, "a.txt");
  *into = co_await me.receive<std::string>();
}
TEST(guide_blocking, gives_what_the_function_returns) {
  runtime rt{{.workers = 1, .level = log_level::off}};
  std::string text;
  rt.run(wants_a_file, &text);
  EXPECT_EQ(text, "text of a.txt");
}

struct entry {
  std::string key;
};
task<bool> ready(self& me);
task<> store(self& me, entry e);

task<> keeps_the_rules(self& me, std::string text) {
  const bool is_ready = co_await ready(me);
  if (!is_ready) co_return;
  entry e{.key = text};
  co_await store(me, std::move(e));
}

task<bool> ready(self&) { co_return true; }
task<> store(self& me, entry e) {
  me.label(e.key);
  co_return;
}
TEST(guide_rules, are_kept) {
  sim::world w{1};
  EXPECT_EQ(w.add_node().rt().run(keeps_the_rules, std::string{"key"}), exit_reason::normal());
}

// ---- observation

void show(runtime& rt) {
  for (const process_info& p : rt.snapshot())
    std::cout << p.id << ' ' << p.name << ' ' << to_string(p.state) << ' ' << p.mailbox << '\n';
}

void find_the_culprits(runtime& rt) {
  for (const process_info& p : rt.snapshot())
    if (p.state == process_state::running && p.lasting > 1s) std::cout << rt.why(p.id) << '\n';
  for (const std::vector<pid>& cycle : rt.call_cycles()) std::cout << rt.why(cycle.front()) << '\n';
}

task<> narrator(self& me) {
  me.subscribe<process_ended>();
  for (;;) {
    const auto end = co_await me.receive<process_ended>();
    if (end.reason.abnormal()) std::cout << end.who << ' ' << end.name << ": " << end.reason << '\n';
  }
}

class to_my_logger final : public log_sink {
 public:
  void write(const log_record& record) override {
    std::string line{record.text};
    for (const log_field& f : record.fields) line.append(" ").append(f.key).append("=").append(f.value);
    // ... hand it on
  }
};

void uses_it() { runtime rt{{.level = log_level::info, .log = std::make_shared<to_my_logger>()}}; }

constexpr log_part db{"db"};

task<> opens_the_database(self& me) {
  me.log(db, log_level::debug, "opened", {{"path", "data.db"}});
  co_return;
}

runtime_options talkative_database() {
  return {.level = log_level::warning, .levels = {{"db", log_level::debug}, {"supervision", log_level::info}}};
}

TEST(guide_observation, of_a_part_has_its_own_level) {
  const auto log = std::make_shared<recorder>();
  runtime_options how = talkative_database();
  how.log = log;
  sim::world w{1};
  w.add_node("n", std::move(how)).rt().spawn(opens_the_database);
  w.settle();
  EXPECT_TRUE(log->has("opened"));
}

task<> fails(self&) {
  throw std::runtime_error{"out of luck"};
  co_return;
}
TEST(guide_observation, shows_processes_and_their_ends) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  const captured out;
  const pid p = rt.spawn(narrator);
  w.settle();
  show(rt);
  find_the_culprits(rt);
  rt.spawn(fails);
  w.settle();
  EXPECT_TRUE(rt.alive(p));
  EXPECT_NE(out.text().find("waiting 0"), std::string::npos) << out.text();
  EXPECT_NE(out.text().find("out of luck"), std::string::npos) << out.text();
  uses_it();
}

// ---- scheduling

void set_up() { runtime rt{{.workers = 4, .budget = 32, .stall_after = 200ms, .level = log_level::info}}; }

task<> gives_up(self& me, runtime* rt) {
  me.subscribe<process_stalled>();
  for (;;) {
    const auto stall = co_await me.receive<process_stalled>();
    rt->abandon(stall.who);
  }
}

TEST(guide_scheduling, a_stuck_process_is_given_up) {
  set_up();
  sim::world w{1};
  sim::node& n = w.add_node();
  n.rt().spawn(gives_up, &n.rt());
  const pid p = n.rt().spawn(squares);
  w.settle();
  n.stick(p, 1h);
  n.rt().send(p, hello{"wakes it"});
  w.run_for(1min);
  EXPECT_FALSE(n.rt().alive(p));
}

// ---- signals

struct work {};
task<> worker(self& me);

task<> watches(self& me) {
  const auto [child, ref] = me.spawn_monitor(worker);
  me.send(child, work{});
  const auto mail = co_await me.receive<down>(1s);
  if (std::holds_alternative<timed_out>(mail)) me.demonitor(ref, self::flush::yes);
}

task<> worker(self& me) { co_await me.receive<work>(); }
TEST(guide_monitor, tells_of_the_end) {
  sim::world w{1};
  EXPECT_EQ(w.add_node().rt().run(watches), exit_reason::normal());
}

// ---- time

struct part {};

task<> collect(self& me, int wanted) {
  const timer_ref limit = me.start_timer(2s);
  for (int have = 0; have < wanted; ++have) {
    const auto mail = co_await me.receive<part, timer_fired>();
    if (std::holds_alternative<timer_fired>(mail)) co_return;
  }
  me.cancel(limit);
}

struct pulse {
  explicit pulse(self& me) { me.start_timer(5s); }
  void handle(timer_fired, self& me) {
    ++beats;
    me.start_timer(5s);
  }
  int beats = 0;
};

TEST(guide_time, a_timer_limits_several_receives) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  const pid p = rt.spawn(collect, 3);
  rt.send(p, part{});
  w.run_for(1s);
  EXPECT_TRUE(rt.alive(p));
  w.run_for(2s);
  EXPECT_FALSE(rt.alive(p));
  const ref<pulse> heart = rt.spawn<pulse>();
  w.run_for(1min);
  EXPECT_TRUE(rt.alive(heart.id()));
}

// ---- trace ids

struct stock {
  struct take {
    using reply = int;
  };
  int handle(take, self& me) {
    me.log(log_level::info, "taken");
    return --left;
  }
  int left = 3;
};

struct request {
  std::string traceparent;
};

task<> serves_requests(self& me, ref<stock> items) {
  for (;;) {
    const auto r = co_await me.receive<request>();
    const auto from = trace_context::from(r.traceparent);                       // the header of that name
    const trace_context now = from ? me.begin_trace(*from) : me.begin_trace();  // or a new trace
    me.log(log_level::info, "order");                                           // with the fields trace=... span=...
    const auto left = co_await items.call<stock::take>();                       // the handler of `stock` belongs to it
    me.log(log_level::info, "done", {{"answered_as", now.traceparent()}});
  }
}

TEST(guide_trace_ids, one_id_finds_all_records_of_a_request) {
  const auto log = std::make_shared<recorder>();
  sim::world w{1};
  runtime& rt =
      w.add_node("shop", {.processes = 1U << 10U, .level = log_level::info, .log = log, .trace_ids = true}).rt();
  const pid p = rt.spawn(serves_requests, rt.spawn<stock>());
  rt.send(p, request{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"});
  rt.send(p, request{"none"});
  w.run();
  const auto lines = log->all();
  ASSERT_EQ(lines.size(), 6U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(lines[i].fields.at("trace"), "0af7651916cd43dd8448eb211c80319c");
  for (std::size_t i = 3; i < 6; ++i) EXPECT_EQ(lines[i].fields.at("trace"), lines[3].fields.at("trace"));
  EXPECT_NE(lines[3].fields.at("trace"), lines[0].fields.at("trace"));
}

// ---- freezing

struct copy_now {};

task<> copies_the_state(self& me, pid workers, pid store) {
  const subtree all{workers};
  const result<frozen> held = co_await freeze(all, 2s);
  if (!held) co_return;  // nothing was frozen, so there is nothing to thaw
  if (held->still_inside.empty()) me.send(store, copy_now{});
  thaw(all);
}

// coppice-lint: allow pointer-parameter: the test waits for its end
task<> keeps_a_copy(self& me, int* copies) {
  const copy_now now = co_await me.receive<copy_now>();
  (void)now;
  ++*copies;
}

TEST(guide_freezing, a_subtree_is_frozen_while_its_state_is_copied) {
  int copies = 0;
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  const ref<pulse> worker = rt.spawn<pulse>();
  const pid store = rt.spawn(keeps_a_copy, &copies);
  rt.spawn(copies_the_state, worker.id(), store);
  w.run_for(1s);
  EXPECT_EQ(copies, 1);
  EXPECT_EQ(rt.info(worker.id())->state, process_state::waiting) << "it was thawed";
}

}  // namespace coppice::guide
