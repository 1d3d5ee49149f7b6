#include <algorithm>
#include <array>
#include <limits>
#include <unordered_set>

#include <coppice/base/ensure.hpp>
#include <coppice/spec/child_info.hpp>

namespace coppice {

std::string_view to_string(restart r) noexcept {
  static constexpr std::array<std::string_view, 3> names = {"permanent", "transient", "temporary"};
  return names.at(std::to_underlying(r));
}
std::string_view to_string(child_type type) noexcept {
  static constexpr std::array<std::string_view, 3> names = {"worker", "supervisor", "actor"};
  return names.at(std::to_underlying(type));
}
std::string_view to_string(child_state state) noexcept {
  static constexpr std::array<std::string_view, 3> names = {"running", "undefined", "restarting"};
  return names.at(std::to_underlying(state));
}
std::string_view to_string(auto_shutdown when) noexcept {
  static constexpr std::array<std::string_view, 3> names = {"never", "any_significant", "all_significant"};
  return names.at(std::to_underlying(when));
}

std::string to_string(std::chrono::nanoseconds time) {
  struct unit {
    std::int64_t size;
    std::string_view name;
  };
  static constexpr std::array<unit, 6> units = {{{3'600'000'000'000, "h"},
                                                 {60'000'000'000, "min"},
                                                 {1'000'000'000, "s"},
                                                 {1'000'000, "ms"},
                                                 {1'000, "us"},
                                                 {1, "ns"}}};
  if (time == std::chrono::nanoseconds::max()) return "forever";
  const std::int64_t count = time.count();
  if (count == 0) return "0s";
  if (count < 0)
    return "-" + to_string(std::chrono::nanoseconds{-std::max(count, -std::numeric_limits<std::int64_t>::max() + 1)});
  for (const unit& u : units) {
    if (count < u.size) continue;
    std::string text = std::to_string(count / u.size);
    const std::int64_t tenths = count % u.size * 10 / u.size;
    if (tenths != 0) text += "." + std::to_string(tenths);
    return text + std::string{u.name};
  }
  return std::to_string(count) + "ns";
}

std::string to_string(const shutdown& s) {
  if (s.is_brutal()) return "brutal_kill";
  if (s.is_infinite()) return "infinity";
  return to_string(s.time());
}

namespace detail {
// NOLINTNEXTLINE(cppcoreguidelines-rvalue-reference-param-not-moved): nothing is born here
result<pid> recipe::spawn(kernel&, birth&&) const {
  ensure(false, "this kind of child is not spawned by the supervisor");
  return pid{};
}
task<start_result> recipe::run(self&) const {
  ensure(false, "this kind of child has no start function");
  co_return start_result{ignored{}};
}
}  // namespace detail

child_spec child_spec::with(const child_options& changes) const& { return child_spec{*this}.with(changes); }
child_spec child_spec::with(const child_options& changes) && {
  child_spec changed = std::move(*this);
  if (!changes.id.empty()) changed.id = changes.id;
  if (!changes.name.empty()) changed.name = changes.name;
  if (changes.restart) changed.restart = *changes.restart;
  if (changes.shutdown) changed.shutdown = *changes.shutdown;
  if (changes.type) changed.type = *changes.type;
  if (changes.significant) changed.significant = *changes.significant;
  if (changes.backoff) changed.backoff = *changes.backoff;
  if (changes.start_within) changed.start_within = *changes.start_within;
  return changed;
}

namespace {

std::unexpected<error> refuse(const child_spec& spec, errc code, const std::string& what) {
  return fail(code, "child '" + spec.id + "': " + what);
}

}  // namespace

result<void> check(const child_spec& spec, auto_shutdown when) {
  if (spec.id.empty()) return fail(errc::invalid, "a child has no id; give it one with .with({.id = \"...\"})");
  if (!spec.start) return refuse(spec, errc::invalid, "start is empty; make the spec with child<T>(...)");
  if (spec.restart > restart::temporary) return refuse(spec, errc::invalid, "restart is none of the restart types");
  if (spec.significant && when == auto_shutdown::never)
    return refuse(spec, errc::bad_combination,
                  "significant needs a supervisor with auto_shutdown any_significant or all_significant");
  if (spec.significant && spec.restart == restart::permanent)
    return refuse(
        spec, errc::bad_combination,
        "significant and restart::permanent: it would never be down for good; make it transient or temporary");
  if (spec.type > child_type::actor) return refuse(spec, errc::invalid, "type is none of the child types");
  if (spec.shutdown && spec.shutdown->time().count() < 0)
    return refuse(spec, errc::invalid, "shutdown is negative: " + to_string(*spec.shutdown));
  if (spec.start_within.count() <= 0)
    return refuse(spec, errc::invalid, "start_within is " + to_string(spec.start_within) + "; it must be more than 0");
  if (spec.start.how().how == detail::recipe::kind::function) {
    if (spec.start_within != forever)
      return refuse(spec, errc::bad_combination, "start_within and a start function: the function has its own limits");
    if (!spec.name.empty())
      return refuse(spec, errc::bad_combination, "name and a start function: the function gives names itself");
  }
  if (spec.backoff && spec.restart == restart::temporary)
    return refuse(spec, errc::bad_combination, "backoff and restart::temporary: it is never restarted");
  if (spec.backoff)
    if (auto sensible = spec.backoff->check(); !sensible)
      return refuse(spec, errc::invalid, std::string{sensible.error().text()});
  return {};
}

result<void> check(const std::vector<child_spec>& specs, auto_shutdown when) {
  std::unordered_set<std::string_view> ids;
  ids.reserve(specs.size());
  for (const child_spec& spec : specs) {
    if (auto sensible = check(spec, when); !sensible) return sensible;
    if (!ids.insert(spec.id).second)
      return fail(errc::duplicate_id,
                  "two children have the id '" + spec.id + "'; give one of them another with .with({.id = \"...\"})");
  }
  return {};
}

}  // namespace coppice
