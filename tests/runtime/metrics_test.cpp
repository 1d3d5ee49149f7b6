// The metrics of a runtime: what may be added, how they are counted, and their text, which a strict parser checks.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <thread>

#include <coppice/runtime/metrics.hpp>
#include <coppice/runtime/runtime.hpp>
#include <coppice/sim/world.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

// ---- a parser of OpenMetrics 1.0, as far as it is used here; it refuses everything else

struct sample {
  std::map<std::string, std::string> labels;
  double value = 0;
};
struct family {
  std::string type;
  std::string unit;
  std::string help;
  std::map<std::string, std::vector<sample>> samples;  // by the suffix of the name
};
using families = std::map<std::string, family>;

class parser {
 public:
  explicit parser(std::string text) : left_{std::move(text)} {}

  families parse() {
    while (!ended_) line(next_line());
    require(left_.empty(), "text behind # EOF");
    for (const auto& [name, f] : all_) check(name, f);
    return all_;
  }

 private:
  static void require(bool holds, const std::string& what) {
    if (!holds) throw std::runtime_error{what};
  }
  std::string next_line() {
    const std::size_t end = left_.find('\n');
    require(end != std::string::npos, "no line feed at the end of: " + left_);
    std::string line = left_.substr(0, end);
    left_.erase(0, end + 1);
    return line;
  }
  void line(const std::string& text) {
    static const std::regex about{R"(# (TYPE|UNIT|HELP) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*))"};
    static const std::regex value{R"(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(.*)\})? ([^ ]+))"};
    std::smatch m;
    if (text == "# EOF") {
      ended_ = true;
    } else if (std::regex_match(text, m, about)) {
      describe(m[1], m[2], m[3]);
    } else {
      require(std::regex_match(text, m, value), "not a line of OpenMetrics: " + text);
      add_sample(m[1], m[3], m[4]);
    }
  }
  void describe(const std::string& what, const std::string& name, const std::string& text) {
    if (what == "TYPE") {
      require(!all_.contains(name), "a second TYPE, or parts of two families are mixed: " + name);
      require(std::set<std::string>{"counter", "gauge", "histogram"}.contains(text), "no such type: " + text);
      all_[name].type = text;
      current_ = name;
      return;
    }
    require(name == current_ && all_[name].samples.empty(), what + " is not in front of the samples of " + name);
    std::string& into = what == "UNIT" ? all_[name].unit : all_[name].help;
    require(into.empty() && !text.empty(), "empty, or a second " + what + " of " + name);
    into = what == "UNIT" ? text : unescape(text);
    require(what == "HELP" || name.ends_with("_" + text), "the unit is not the end of the name " + name);
  }
  void add_sample(const std::string& name, const std::string& labels, const std::string& value) {
    require(!current_.empty() && name.starts_with(current_), "not a sample of " + current_ + ": " + name);
    family& f = all_[current_];
    const std::string suffix = name.substr(current_.size());
    const std::set<std::string> allowed = f.type == "counter" ? std::set<std::string>{"_total"}
                                          : f.type == "gauge" ? std::set<std::string>{""}
                                                              : std::set<std::string>{"_bucket", "_count", "_sum"};
    require(allowed.contains(suffix), "a " + f.type + " has no " + name);
    sample s{.labels = parse_labels(labels), .value = number(value)};
    for (const sample& other : f.samples[suffix]) require(other.labels != s.labels, "the same labels twice: " + name);
    f.samples[suffix].push_back(std::move(s));
  }
  static std::map<std::string, std::string> parse_labels(const std::string& text) {
    static const std::regex one{R"re(([a-zA-Z_][a-zA-Z0-9_]*)="((?:\\\\|\\"|\\n|[^"\\])*)")re"};
    std::map<std::string, std::string> all;
    for (auto at = text.begin(); at != text.end();) {
      std::smatch m;
      require(std::regex_search(at, text.end(), m, one, std::regex_constants::match_continuous), "no labels: " + text);
      require(all.emplace(m[1], unescape(m[2])).second, "a label twice: " + text);
      at = m[0].second;
      if (at != text.end()) require(*at == ',' && ++at != text.end(), "no comma between labels: " + text);
    }
    return all;
  }
  static std::string unescape(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        out += text[i];
        continue;
      }
      require(++i < text.size() && (text[i] == 'n' || text[i] == '"' || text[i] == '\\'), "a wrong escape: " + text);
      out += text[i] == 'n' ? '\n' : text[i];
    }
    return out;
  }
  static double number(const std::string& text) {
    static const std::regex real{R"([+-]?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?)"};
    if (text == "+Inf" || text == "-Inf") return text == "+Inf" ? std::numeric_limits<double>::infinity() : -1e308;
    require(std::regex_match(text, real), "not a number: " + text);
    return std::stod(text);
  }
  static void check(const std::string& name, const family& f) {
    require(!f.samples.empty(), "no samples of " + name);
    if (f.type != "histogram") return;
    std::map<std::map<std::string, std::string>, std::vector<std::pair<double, double>>> buckets;  // by other labels
    for (sample s : f.samples.at("_bucket")) {
      const double bound = number(s.labels.at("le"));
      s.labels.erase("le");
      buckets[s.labels].emplace_back(bound, s.value);
    }
    for (const auto& [labels, all] : buckets) {
      require(std::ranges::is_sorted(all) && std::isinf(all.back().first), "buckets of " + name + " are out of order");
      for (std::size_t i = 1; i < all.size(); ++i)
        require(all[i].second >= all[i - 1].second, "buckets of " + name + " do not add up");
      const auto& counts = f.samples.at("_count");
      require(std::ranges::any_of(counts,
                                  [&](const sample& s) { return s.labels == labels && s.value == all.back().second; }),
              "the count of " + name + " is not that of its last bucket");
    }
  }

  std::string left_;
  families all_;
  std::string current_;
  bool ended_ = false;
};

families parsed(metrics& m) { return parser{m.text()}.parse(); }
double value_of(const families& all, const std::string& name, const std::string& suffix = "_total",
                const std::map<std::string, std::string>& labels = {}) {
  for (const sample& s : all.at(name).samples.at(suffix))
    if (s.labels == labels) return s.value;
  throw std::runtime_error{name + " has no sample with these labels"};
}
bool is_refused(metrics& m, const metric_options& what, std::string_view because) {
  try {
    (void)m.counter(what);
  } catch (const std::invalid_argument& x) {
    return std::string_view{x.what()}.find(because) != std::string_view::npos;
  }
  return false;
}

// ---- the text

TEST(metrics, the_text_of_a_registry_without_metrics_is_valid) {
  metrics m{nullptr};
  EXPECT_EQ(m.text(), "# EOF\n");
  EXPECT_TRUE(parsed(m).empty());
}
TEST(metrics, the_text_has_type_unit_help_and_labels) {
  metrics m{nullptr};
  m.counter({.name = "shop_orders", .help = "Orders received.", .labels = {{"kind", "web"}, {"city", "Bonn"}}}).add(3);
  m.counter({.name = "shop_orders", .help = "Orders received.", .labels = {{"kind", "mail"}, {"city", "Bonn"}}}).add();
  m.gauge({.name = "shop_stock_bytes", .unit = "bytes"}).set(-1.5);
  EXPECT_EQ(m.text(),
            "# TYPE shop_orders counter\n"
            "# HELP shop_orders Orders received.\n"
            "shop_orders_total{city=\"Bonn\",kind=\"mail\"} 1\n"
            "shop_orders_total{city=\"Bonn\",kind=\"web\"} 3\n"
            "# TYPE shop_stock_bytes gauge\n"
            "# UNIT shop_stock_bytes bytes\n"
            "shop_stock_bytes -1.5\n"
            "# EOF\n");
  const families all = parsed(m);
  EXPECT_EQ(all.at("shop_orders").help, "Orders received.");
  EXPECT_EQ(value_of(all, "shop_orders", "_total", {{"kind", "web"}, {"city", "Bonn"}}), 3);
  EXPECT_EQ(value_of(all, "shop_stock_bytes", ""), -1.5);
}
TEST(metrics, the_text_escapes_what_people_wrote) {
  metrics m{nullptr};
  const std::string strange = "a\\b \"c\"\nd,e=\"f\"} {";
  m.counter({.name = "odd", .help = "line 1\nline \"2\" \\", .labels = {{"a", strange}, {"b", ""}}}).add();
  const families all = parsed(m);
  EXPECT_EQ(all.at("odd").help, "line 1\nline \"2\" \\");
  EXPECT_EQ(value_of(all, "odd", "_total", {{"a", strange}, {"b", ""}}), 1);
}
TEST(metrics, numbers_of_every_size_are_valid) {
  metrics m{nullptr};
  const metric_gauge g = m.gauge({.name = "size"});
  for (const double value : {0.0, -0.0, 1e-300, 1.25, 3e20, 1e300, -17.0}) {
    g.set(value);
    EXPECT_EQ(value_of(parsed(m), "size", ""), value);
  }
  g.set(std::numeric_limits<double>::infinity());
  EXPECT_NE(m.text().find("size +Inf\n"), std::string::npos);
  m.counter({.name = "big"}).add(std::numeric_limits<std::uint64_t>::max());
  EXPECT_NE(m.text().find("big_total 18446744073709551615\n"), std::string::npos);
}
TEST(metrics, a_histogram_counts_values_up_to_each_bound) {
  metrics m{nullptr};
  const metric_histogram h = m.histogram({.name = "wait_seconds", .unit = "seconds", .labels = {{"q", "a"}}}, {0.5, 1});
  (void)m.histogram({.name = "wait_seconds", .unit = "seconds", .labels = {{"q", "b"}}}, {0.5, 1});
  for (const double value : {0.25, 0.5, 0.75, 1.0, 5.0, std::numeric_limits<double>::quiet_NaN()}) h.observe(value);
  const families all = parsed(m);
  EXPECT_EQ(value_of(all, "wait_seconds", "_bucket", {{"q", "a"}, {"le", "0.5"}}), 2);
  EXPECT_EQ(value_of(all, "wait_seconds", "_bucket", {{"q", "a"}, {"le", "1"}}), 4);
  EXPECT_EQ(value_of(all, "wait_seconds", "_bucket", {{"q", "a"}, {"le", "+Inf"}}), 5);
  EXPECT_EQ(value_of(all, "wait_seconds", "_count", {{"q", "a"}}), 5);
  EXPECT_EQ(value_of(all, "wait_seconds", "_sum", {{"q", "a"}}), 7.5);
  EXPECT_EQ(value_of(all, "wait_seconds", "_count", {{"q", "b"}}), 0);
}
TEST(metrics, a_histogram_with_negative_bounds_has_no_sum) {
  metrics m{nullptr};
  m.histogram({.name = "drift"}, {-1, 0, 1}).observe(-0.5);
  const families all = parsed(m);
  EXPECT_EQ(value_of(all, "drift", "_count"), 1);
  EXPECT_FALSE(all.at("drift").samples.contains("_sum"));
}
TEST(metrics, a_histogram_has_no_sum_any_more_when_a_value_was_negative) {
  metrics m{nullptr};
  const metric_histogram h = m.histogram({.name = "drift"}, {0, 1});
  h.observe(0.5);
  EXPECT_EQ(value_of(parsed(m), "drift", "_sum"), 0.5);
  h.observe(-0.25);
  h.observe(2);
  const families all = parsed(m);
  EXPECT_EQ(value_of(all, "drift", "_count"), 3);
  EXPECT_FALSE(all.at("drift").samples.contains("_sum")) << "it would have shrunk";
}

// ---- adding metrics

TEST(metrics, adding_the_same_again_continues_to_count) {
  metrics m{nullptr};
  m.counter({.name = "n", .labels = {{"a", "1"}, {"b", "2"}}}).add(2);
  const metric_counter again = m.counter({.name = "n", .labels = {{"b", "2"}, {"a", "1"}}});
  again.add(3);
  EXPECT_EQ(again.value(), 5U);
  m.gauge({.name = "g"}).set(1);
  m.gauge({.name = "g"}).add(2);
  EXPECT_EQ(m.gauge({.name = "g"}).value(), 3);
}
TEST(metrics, names_that_are_not_allowed_are_refused) {
  metrics m{nullptr};
  for (const char* name : {"", "1a", "a b", "a-b", "a:b", "ä", "a\n"})
    EXPECT_TRUE(is_refused(m, {.name = name}, "not a name"));
  for (const char* name : {"a_total", "a_created", "a_bucket", "a_count", "a_sum", "a_info"})
    EXPECT_TRUE(is_refused(m, {.name = name}, "must not end in _"));
  EXPECT_TRUE(is_refused(m, {.name = "time", .unit = "seconds"}, "must end in"));
  EXPECT_TRUE(is_refused(m, {.name = "time_a b", .unit = "a b"}, "not a name"));
  EXPECT_TRUE(is_refused(m, {.name = "n", .labels = {{"a-b", ""}}}, "label 'a-b' is not a name"));
  EXPECT_TRUE(is_refused(m, {.name = "n", .labels = {{"__a", ""}}}, "two underscores"));
  EXPECT_TRUE(is_refused(m, {.name = "n", .labels = {{"a", "1"}, {"a", "2"}}}, "occurs twice"));
  EXPECT_THROW((void)m.histogram({.name = "h", .labels = {{"le", "1"}}}, {1}), std::invalid_argument);
  EXPECT_EQ(m.text(), "# EOF\n") << "nothing was added";
}
TEST(metrics, a_name_has_one_kind_help_unit_and_bounds) {
  metrics m{nullptr};
  (void)m.counter({.name = "n", .help = "a"});
  EXPECT_TRUE(is_refused(m, {.name = "n", .help = "b"}, "another help or unit"));
  EXPECT_THROW((void)m.gauge({.name = "n", .help = "a"}), std::invalid_argument);
  (void)m.histogram({.name = "h"}, {1, 2});
  EXPECT_THROW((void)m.histogram({.name = "h"}, {1, 3}), std::invalid_argument);
  EXPECT_THROW((void)m.histogram({.name = "h", .labels = {{"a", "b"}}}, {2}), std::invalid_argument);
  for (const std::vector<double>& bounds :
       {std::vector<double>{}, {1, 1}, {2, 1}, {std::numeric_limits<double>::infinity()}})
    EXPECT_THROW((void)m.histogram({.name = "other"}, bounds), std::invalid_argument);
  (void)parsed(m);
}

// ---- the metrics of a runtime

struct shop_counters {
  explicit shop_counters(metrics& m) : orders{m.counter({.name = "shop_orders"})} {}
  metric_counter orders;
};
task<> orders(self& me, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) metrics_of(me).of<shop_counters>().orders.add();
  co_return;
}
TEST(metrics, of_two_runtimes_are_apart) {
  runtime one{quiet()};
  runtime other{quiet()};
  EXPECT_EQ(one.run(orders, std::uint64_t{3}), exit_reason::normal());
  EXPECT_EQ(other.run(orders, std::uint64_t{5}), exit_reason::normal());
  EXPECT_EQ(value_of(parsed(metrics_of(one)), "shop_orders"), 3);
  EXPECT_EQ(value_of(parsed(metrics_of(other)), "shop_orders"), 5);
}
TEST(metrics, sets_are_made_once_and_count_on_many_threads) {
  runtime rt{quiet()};
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < 4; ++i)
      all.emplace_back([&] {
        for (int n = 0; n < 10'000; ++n) metrics_of(rt).of<shop_counters>().orders.add();
      });
  }
  EXPECT_EQ(metrics_of(rt).of<shop_counters>().orders.value(), 40'000U);
}
struct inner_set {
  explicit inner_set(metrics& m) : count{m.counter({.name = "inner"})} {}
  metric_counter count;
};
struct outer_set {
  explicit outer_set(metrics& m) : inner{&m.of<inner_set>()} {}
  const inner_set* inner;
};

TEST(metrics, a_set_may_use_another_one) {
  runtime rt{quiet()};
  metrics& m = metrics_of(rt);
  m.of<outer_set>().inner->count.add();
  EXPECT_TRUE(m.text().find("inner_total 1") != std::string::npos) << m.text();
}

TEST(metrics, may_be_used_after_their_runtime_has_ended) {
  std::optional<metric_counter> n;
  std::optional<metric_gauge> g;
  std::optional<metric_histogram> h;
  {
    runtime rt{quiet()};
    n = metrics_of(rt).counter({.name = "n"});
    g = metrics_of(rt).gauge({.name = "g"});
    h = metrics_of(rt).histogram({.name = "h"}, {1});
    n->add(2);
  }
  n->add();
  g->set(4);
  h->observe(0.5);
  EXPECT_EQ(n->value(), 3U);
  EXPECT_EQ(g->value(), 4);
}

task<> waits(self& me) { co_await me.sleep(24h); }
TEST(metrics, have_the_counters_of_the_runtime_itself) {
  sim::world w{1};
  runtime& rt = w.add_node("n", {.processes = 1U << 8U, .level = log_level::off}).rt();
  const pid who = rt.spawn(waits);
  rt.spawn(waits);
  w.run_for(1s);
  rt.kill(who);
  w.run_for(1s);
  rt.send(who, 1);
  w.settle();
  const families all = parsed(metrics_of(rt));
  const runtime_counters now = rt.counters();
  EXPECT_EQ(value_of(all, "coppice_processes_spawned"), static_cast<double>(now.spawned));
  EXPECT_EQ(value_of(all, "coppice_processes_spawned"), 2);
  EXPECT_EQ(value_of(all, "coppice_processes_ended"), 1);
  EXPECT_EQ(value_of(all, "coppice_processes", ""), 1);
  EXPECT_EQ(value_of(all, "coppice_signals_handled"), static_cast<double>(now.handled));
  EXPECT_EQ(value_of(all, "coppice_dead_letters"), 1);
  EXPECT_EQ(value_of(all, "coppice_timers_pending", ""), 1);
  EXPECT_EQ(value_of(all, "coppice_blocking_done"), 0);
  for (const auto& [name, f] : all) EXPECT_FALSE(f.help.empty()) << name;
}
TEST(metrics, names_that_begin_with_coppice_are_refused) {
  metrics m{nullptr};
  for (const char* name : {"coppice_orders", "coppice_dead_letters", "coppice_restarts", "coppice_supervisors_gave_up"})
    EXPECT_TRUE(is_refused(m, {.name = name}, "names that begin with coppice_")) << name;
  EXPECT_THROW((void)m.gauge({.name = "coppice_restarts", .help = "Children that supervisors have started again."}),
               std::invalid_argument);
  EXPECT_EQ(m.text(), "# EOF\n") << "nothing was added";
}

}  // namespace
