#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <variant>

#include <coppice/runtime/metrics.hpp>

namespace coppice {

namespace detail {

histogram_cells::histogram_cells(std::vector<double> upper) : bounds{std::move(upper)}, counts(bounds.size() + 1) {}

void histogram_cells::observe(double value) noexcept {
  if (std::isnan(value)) return;
  const auto bucket = static_cast<std::size_t>(std::ranges::lower_bound(bounds, value) - bounds.begin());
  counts[bucket].fetch_add(1, std::memory_order_relaxed);
  // A negative value would make the sum shrink, which the format forbids. Whatever is added to NaN, it stays NaN.
  sum.fetch_add(value < 0 ? std::numeric_limits<double>::quiet_NaN() : value, std::memory_order_relaxed);
}

/// The metrics of one name.
struct metric_family {
  using counter = std::shared_ptr<std::atomic<std::uint64_t>>;
  using gauge = std::shared_ptr<std::atomic<double>>;
  using histogram = std::shared_ptr<histogram_cells>;
  using cells = std::variant<counter, gauge, histogram>;
  std::string help;
  std::string unit;
  std::vector<double> bounds;        // of a histogram
  std::map<std::string, cells> all;  // by the text of the labels; never empty
};

}  // namespace detail

namespace {

using detail::metric_family;

// ---- what is allowed

[[noreturn]] void refuse(std::string_view name, const std::string& why) {
  throw std::invalid_argument{"metric '" + std::string{name} + "': " + why};
}

bool is_name(std::string_view text) noexcept {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

constexpr std::string_view rule_of_names =
    " is not a name: it must have letters, digits and underscores only, and not begin with a digit";

void check_name(const metric_options& what) {
  if (!is_name(what.name)) refuse(what.name, "it" + std::string{rule_of_names});
  for (const std::string_view suffix : {"_total", "_created", "_bucket", "_count", "_sum", "_info"})
    if (what.name.ends_with(suffix)) refuse(what.name, "a name must not end in " + std::string{suffix});
  if (!what.unit.empty() && (!is_name(what.unit) || !what.name.ends_with("_" + what.unit)))
    refuse(what.name, "a name must end in an underscore and its unit, '" + what.unit + "'");
}

/// A metric of a user with the name of one of the library, but of another kind, would make the library fail later.
void check_not_reserved(const metric_options& what) {
  if (what.name.starts_with("coppice_")) refuse(what.name, "names that begin with coppice_ are for Coppice itself");
}

void check_labels(const metric_options& what, bool is_histogram) {
  for (auto l = what.labels.begin(); l != what.labels.end(); ++l) {
    if (!is_name(l->name)) refuse(what.name, "label '" + l->name + "'" + std::string{rule_of_names});
    if (l->name.starts_with("__")) refuse(what.name, "label '" + l->name + "' must not begin with two underscores");
    if (is_histogram && l->name == "le") refuse(what.name, "a histogram has a label 'le' already");
    if (std::any_of(what.labels.begin(), l, [&](const metric_label& other) { return other.name == l->name; }))
      refuse(what.name, "label '" + l->name + "' occurs twice");
  }
}

// ---- text

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

/// In the order of their names, so that the order in which they were given makes no difference.
std::string text_of(std::vector<metric_label> labels) {
  std::ranges::sort(labels, {}, &metric_label::name);
  std::string out;
  for (const metric_label& l : labels) out += (out.empty() ? "" : ",") + l.name + "=\"" + escaped(l.value) + "\"";
  return out;
}

std::string text_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

class writer {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view unit, std::string_view help) {
    about("TYPE", name, type);
    if (!unit.empty()) about("UNIT", name, unit);
    if (!help.empty()) about("HELP", name, escaped(help));
  }
  void sample(std::string_view name, std::string_view suffix, const std::string& labels, const std::string& value) {
    out_.append(name).append(suffix);
    if (!labels.empty()) out_.append("{").append(labels).append("}");
    out_.append(" ").append(value).append("\n");
  }
  [[nodiscard]] std::string take() { return std::exchange(out_, {}); }

 private:
  void about(std::string_view what, std::string_view name, std::string_view text) {
    out_.append("# ").append(what).append(" ").append(name).append(" ").append(text).append("\n");
  }
  std::string out_;
};

/// Writes the samples of one cell.
struct sampler {
  writer& out;
  const std::string& name;
  const std::string& labels;
  void operator()(const metric_family::counter& cell) const {
    out.sample(name, "_total", labels, std::to_string(cell->load(std::memory_order_relaxed)));
  }
  void operator()(const metric_family::gauge& cell) const {
    out.sample(name, "", labels, text_of(cell->load(std::memory_order_relaxed)));
  }
  void operator()(const metric_family::histogram& cells) const {
    std::uint64_t up_to = 0;
    for (std::size_t i = 0; i < cells->counts.size(); ++i) {
      up_to += cells->counts[i].load(std::memory_order_relaxed);
      const std::string bound = i < cells->bounds.size() ? text_of(cells->bounds[i]) : "+Inf";
      out.sample(name, "_bucket", labels + (labels.empty() ? "" : ",") + "le=\"" + bound + "\"", std::to_string(up_to));
    }
    out.sample(name, "_count", labels, std::to_string(up_to));
    // With bounds for negative values there is no sum from the beginning, not only after the first of them.
    const double sum = cells->sum.load(std::memory_order_relaxed);
    if (cells->bounds.front() >= 0 && !std::isnan(sum)) out.sample(name, "_sum", labels, text_of(sum));
  }
};

constexpr std::array<std::string_view, 3> kinds{"counter", "gauge", "histogram"};

}  // namespace

// ---- adding metrics

metrics::metrics(std::function<std::vector<computed>()> own) : own_{std::move(own)} {}

metrics::~metrics() {
  for (const set* s = sets_.load(); s != nullptr;) delete std::exchange(s, s->next);
}

template <class Cells, class Make>
Cells metrics::add(const metric_options& what, const std::vector<double>& bounds, const Make& make) {
  const std::size_t kind = metric_family::cells{Cells{}}.index();
  check_name(what);
  check_labels(what, kind == 2);
  const std::scoped_lock lock{mutex_};
  std::string labels = text_of(what.labels);
  const auto found = families_.find(what.name);
  if (found == families_.end()) {
    Cells made = make();
    auto family = std::make_unique<metric_family>(metric_family{what.help, what.unit, bounds, {}});
    family->all.emplace(std::move(labels), made);
    families_.emplace(what.name, std::move(family));
    return made;
  }
  metric_family& family = *found->second;
  const std::size_t kind_there = family.all.begin()->second.index();
  if (kind_there != kind) refuse(what.name, "it is a " + std::string{kinds.at(kind_there)} + " already");
  if (family.help != what.help || family.unit != what.unit || family.bounds != bounds)
    refuse(what.name, "it was added before with another help or unit, or other upper bounds");
  if (const auto there = family.all.find(labels); there != family.all.end()) return std::get<Cells>(there->second);
  Cells made = make();
  family.all.emplace(std::move(labels), made);
  return made;
}

metric_counter metrics::add_counter(const metric_options& what) {
  return metric_counter{
      add<metric_family::counter>(what, {}, [] { return std::make_shared<std::atomic<std::uint64_t>>(0U); })};
}

metric_counter metrics::counter(const metric_options& what) {
  check_not_reserved(what);
  return add_counter(what);
}

metric_counter detail::library_counter(metrics& m, const metric_options& what) { return m.add_counter(what); }

metric_gauge metrics::gauge(const metric_options& what) {
  check_not_reserved(what);
  return metric_gauge{add<metric_family::gauge>(what, {}, [] { return std::make_shared<std::atomic<double>>(0.0); })};
}

metric_histogram metrics::histogram(const metric_options& what, const std::vector<double>& upper_bounds) {
  check_not_reserved(what);
  if (upper_bounds.empty()) refuse(what.name, "a histogram needs at least one upper bound");
  for (std::size_t i = 0; i < upper_bounds.size(); ++i)
    if (!std::isfinite(upper_bounds[i]) || (i > 0 && upper_bounds[i] <= upper_bounds[i - 1]))
      refuse(what.name, "the upper bounds must be finite and in increasing order");
  return metric_histogram{add<metric_family::histogram>(
      what, upper_bounds, [&] { return std::make_shared<detail::histogram_cells>(upper_bounds); })};
}

void* metrics::add_set(const void* key, std::shared_ptr<void> (*make)(metrics&)) {
  std::shared_ptr<void> made = make(*this);  // without the lock: it may ask for another set
  const std::scoped_lock lock{sets_mutex_};
  if (void* found = find_set(key)) return found;
  const auto* added = new set{key, std::move(made), sets_.load()};
  sets_.store(added, std::memory_order_release);
  return added->value.get();
}

// ---- the text

std::string metrics::text() const {
  std::map<std::string, std::string, std::less<>> blocks;  // by name
  writer out;
  if (own_) {
    for (const computed& c : own_()) {
      out.begin(c.name, c.grows ? "counter" : "gauge", "", c.help);
      out.sample(c.name, c.grows ? "_total" : "", "", std::to_string(c.value));
      blocks.emplace(c.name, out.take());
    }
  }
  const std::scoped_lock lock{mutex_};
  for (const auto& [name, family] : families_) {
    out.begin(name, kinds.at(family->all.begin()->second.index()), family->unit, family->help);
    for (const auto& [labels, cells] : family->all) std::visit(sampler{out, name, labels}, cells);
    blocks.emplace(name, out.take());
  }
  std::string all;
  for (const auto& [name, block] : blocks) all += block;
  return all + "# EOF\n";
}

}  // namespace coppice
