#pragma once
#include <functional>

#include <coppice/spec/child.hpp>
#include <coppice/spec/restart_window.hpp>

namespace coppice {

enum class strategy : std::uint8_t {
  one_for_one,   ///< only the child that ended is restarted
  one_for_all,   ///< all children are restarted
  rest_for_one,  ///< the child that ended and those started after it are restarted
};
[[nodiscard]] std::string_view to_string(strategy s) noexcept;

/// Places in the list of children, from `first` up to but not including `last`.
struct restart_range {
  std::size_t first = 0;
  std::size_t last = 0;
  [[nodiscard]] constexpr std::size_t size() const noexcept { return last - first; }
  [[nodiscard]] constexpr bool contains(std::size_t place) const noexcept { return first <= place && place < last; }
  friend constexpr bool operator==(const restart_range&, const restart_range&) = default;
};

/// Which of `count` children are restarted when the one at `place` has ended.
[[nodiscard]] constexpr restart_range range_to_restart(strategy s, std::size_t place, std::size_t count) noexcept {
  switch (s) {
    case strategy::one_for_one: return {place, place + 1};
    case strategy::one_for_all: return {0, count};
    case strategy::rest_for_one: return {place, count};
  }
  return {place, place + 1};
}

class supervisor;

/// A supervisor and its children, in the order in which they are started. They are stopped in the reverse order.
///
///     supervisor_spec tree{
///         .strategy = strategy::rest_for_one,
///         .limit = {.restarts = 3, .within = 5s},
///         .children = {child<database>(url), child<cache>(), child<web_server>(8080)},
///     };
struct supervisor_spec {
  coppice::strategy strategy = coppice::strategy::one_for_one;
  restart_limit limit{};
  coppice::auto_shutdown auto_shutdown = coppice::auto_shutdown::never;
  std::vector<child_spec> children{};
  /// How long to wait for the end of a child after a kill. A child that takes longer is stuck in code that does not
  /// return; it is abandoned, and the supervisor goes on. Default: without limit.
  std::optional<std::chrono::nanoseconds> abandon_after{};

  /// Makes `child<T>` treat a type `T` as a supervisor if its `static supervisor_spec init(args...)` returns this spec.
  using supervised_by = supervisor;
};

/// All faults of the supervisor and of everything below it that can be seen without starting it, each with its path.
/// `path` leads to the supervisor. See `find_faults` of child specs.
[[nodiscard]] std::vector<spec_fault> find_faults(const supervisor_spec& spec,
                                                  const std::vector<std::string>& path = {});
/// Whether a supervisor would accept this spec; nothing is started. The error lists all faults of `find_faults` and has
/// the code of the first: `invalid`, `bad_combination` or `duplicate_id`.
[[nodiscard]] result<void> check(const supervisor_spec& spec);

}  // namespace coppice
