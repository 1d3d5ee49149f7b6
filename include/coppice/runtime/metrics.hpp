#pragma once
/// Counters of a runtime, of its libraries and of its users, as OpenMetrics text for a monitoring system.
///
///     struct shop_counters {                                    // once for each runtime, found without a lock
///       explicit shop_counters(metrics& m)
///           : orders{m.counter({.name = "shop_orders", .help = "Orders received.", .labels = {{"kind", "web"}}})} {}
///       metric_counter orders;
///     };
///     metrics_of(me).of<shop_counters>().orders.add();          // in a process
///     const std::string text = metrics_of(rt).text();           // for the response to a scrape
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coppice {

class metric_counter;
class metrics;
struct metric_options;

namespace detail {
class kernel;
[[nodiscard]] metrics& metrics_in(kernel& k) noexcept;
struct metric_family;
/// Adds a counter of the library, whose name begins with `coppice_`.
[[nodiscard]] metric_counter library_counter(metrics& m, const metric_options& what);
struct histogram_cells {
  explicit histogram_cells(std::vector<double> upper);
  void observe(double value) noexcept;
  const std::vector<double> bounds;  // in increasing order; the last bucket has none
  std::vector<std::atomic<std::uint64_t>> counts;
  std::atomic<double> sum{0};
};
/// The address tells types apart.
template <class T>
inline constexpr char metric_set_key = 0;
}  // namespace detail

/// A number that only grows. Copies count together. May be used from any thread, also after its runtime has ended.
class metric_counter {
 public:
  explicit metric_counter(std::shared_ptr<std::atomic<std::uint64_t>> cell) noexcept : cell_{std::move(cell)} {}
  void add(std::uint64_t n = 1) const noexcept { cell_->fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const noexcept { return cell_->load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<std::atomic<std::uint64_t>> cell_;
};

/// A number that goes up and down. Otherwise as a counter.
class metric_gauge {
 public:
  explicit metric_gauge(std::shared_ptr<std::atomic<double>> cell) noexcept : cell_{std::move(cell)} {}
  void set(double value) const noexcept { cell_->store(value, std::memory_order_relaxed); }
  void add(double n) const noexcept { cell_->fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] double value() const noexcept { return cell_->load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<std::atomic<double>> cell_;
};

/// How many values were in which range, and their sum. Otherwise as a counter.
class metric_histogram {
 public:
  explicit metric_histogram(std::shared_ptr<detail::histogram_cells> cells) noexcept : cells_{std::move(cells)} {}
  /// A value that is not a number is ignored.
  void observe(double value) const noexcept { cells_->observe(value); }

 private:
  std::shared_ptr<detail::histogram_cells> cells_;
};

struct metric_label {
  std::string name;
  std::string value;
};

/// What a metric is called: `{.name = "shop_orders", .help = "Orders received.", .labels = {{"kind", "web"}}}`.
struct metric_options {
  /// Letters, digits and underscores; does not begin with a digit. Metrics with the same name must be of the same kind,
  /// with the same help and unit, and differ in their labels. The text adds `_total` to counters, so the name must not
  /// end in a suffix that OpenMetrics uses itself: `_total`, `_created`, `_bucket`, `_count`, `_sum`, `_info`. Names
  /// that begin with `coppice_` are for the runtime and its libraries.
  std::string name;
  /// For people. Default: none.
  std::string help{};
  /// Such as `seconds` or `bytes`: the name must end with it, `request_seconds`. Default: none.
  std::string unit{};
  /// Names as for metrics, but they must not begin with two underscores; `le` is not allowed for a histogram.
  std::vector<metric_label> labels{};
};

/// The metrics of one runtime, from `metrics_of`. Lives as long as the runtime. Any thread may use it.
class metrics {
 public:
  /// A value that is not kept here, but computed for each text.
  struct computed {
    std::string_view name;
    std::string_view help;
    bool grows;  ///< a counter; else a gauge
    std::uint64_t value;
  };
  /// For the library. `own` returns the values that the runtime itself counts.
  explicit metrics(std::function<std::vector<computed>()> own);
  ~metrics();
  metrics(const metrics&) = delete;
  metrics& operator=(const metrics&) = delete;

  /// These add a metric. If there is one with that name and those labels, they return that one, so a process that is
  /// started again continues to count. All throw `std::invalid_argument` for names that are not allowed, for labels
  /// that occur twice, and if the name is that of another kind of metric, or has another help or unit.
  [[nodiscard]] metric_counter counter(const metric_options& what);
  [[nodiscard]] metric_gauge gauge(const metric_options& what);
  /// `upper_bounds`: of the ranges, in increasing order; a value above the last one is counted too. Also throws if they
  /// are not finite, not in order, or other than those of the metric with that name.
  [[nodiscard]] metric_histogram histogram(const metric_options& what, const std::vector<double>& upper_bounds);

  /// The `Set` of this runtime: a class whose constructor takes a `metrics&` and whose members are metrics. It is made
  /// when it is first asked for, and then found without a lock. Throws what its constructor throws.
  template <class Set>
  [[nodiscard]] Set& of() {
    if (void* found = find_set(&detail::metric_set_key<Set>)) return *static_cast<Set*>(found);
    return *static_cast<Set*>(add_set(&detail::metric_set_key<Set>,
                                      [](metrics& m) { return std::shared_ptr<void>{std::make_shared<Set>(m)}; }));
  }

  /// All metrics in OpenMetrics 1.0, content type `application/openmetrics-text; version=1.0.0; charset=utf-8`.
  [[nodiscard]] std::string text() const;

 private:
  friend metric_counter detail::library_counter(metrics& m, const metric_options& what);
  struct set {
    const void* key;
    std::shared_ptr<void> value;
    const set* next;
  };
  [[nodiscard]] void* find_set(const void* key) const noexcept {
    for (const set* s = sets_.load(std::memory_order_acquire); s != nullptr; s = s->next)
      if (s->key == key) return s->value.get();
    return nullptr;
  }
  [[nodiscard]] metric_counter add_counter(const metric_options& what);
  template <class Cells, class Make>
  [[nodiscard]] Cells add(const metric_options& what, const std::vector<double>& bounds, const Make& make);
  [[nodiscard]] void* add_set(const void* key, std::shared_ptr<void> (*make)(metrics&));

  const std::function<std::vector<computed>()> own_;
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<detail::metric_family>, std::less<>> families_;
  std::mutex sets_mutex_;
  std::atomic<const set*> sets_{nullptr};  // only grows
};

/// The metrics of a runtime; `host` is the `runtime`, or the `self` of one of its processes.
template <class Host>
[[nodiscard]] metrics& metrics_of(Host& host) {
  return detail::metrics_in(host.host());
}

}  // namespace coppice
