#pragma once
/// What a parent decides when a child fails.
///
///     one_for_one()                                                      // restart it, at most 10 times in 10 s
///     one_for_one({.limit = {.restarts = 3, .within = 1min},
///                  .decide = decide_by(directive::escalate, on<io_error>(directive::resume))})
///     all_for_one({.wait = backoff{.first = 200ms, .cap = 30s, .jitter = 0.2}})
///
/// A child that fails more often than the limit allows is stopped with the reason of its last failure; with
/// `all_for_one`, its siblings are stopped too. Restarts are counted for each child; with `all_for_one`, only for the
/// child that failed.
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include <coppice/actor/fwd.hpp>
#include <coppice/runtime/call.hpp>
#include <coppice/spec/backoff.hpp>
#include <coppice/spec/restart_window.hpp>

namespace coppice::actor {

enum class directive : std::uint8_t {
  resume,    ///< continue with the next message and the same instance
  restart,   ///< continue with a new instance; pid and mailbox stay the same
  stop,      ///< end with the reason of the failure
  escalate,  ///< the parent itself fails with that reason
};
[[nodiscard]] std::string_view to_string(directive d) noexcept;

/// A failure, as the decider of the parent sees it.
struct child_failure {
  pid child;
  std::string_view name;     ///< the name given at the spawn; empty: none
  exit_reason reason;        ///< with the type and the text of the exception, and the type of the message
  std::exception_ptr what;   ///< null: it failed without an exception
  std::size_t restarts = 0;  ///< earlier restarts of the child, within the time of the limit if there is one
};
/// Runs in the parent. If several parents share a strategy, it may run on several threads at once.
using decider = std::function<directive(const child_failure&)>;

/// Restarts without a limit.
inline constexpr restart_limit unlimited{.restarts = std::numeric_limits<int>::max(), .within = forever};

struct strategy_options {
  /// `restarts = 0`: the child is stopped and never restarted. `within = forever`: counted over its whole life.
  restart_limit limit{.restarts = 10, .within = std::chrono::seconds{10}};
  /// Default: restart after every failure. If it throws, the parent fails, as with `escalate`.
  decider decide{};
  /// How long a failed child waits for its restart. Its mail waits too. A child that has run for `reset_after` starts
  /// with the first wait again. Default: no wait.
  std::optional<backoff> wait{};
};

/// The decision of a custom strategy.
struct judgement {
  directive what = directive::restart;
  bool all = false;                   ///< `restart` and `stop`: all children, not only the one that failed
  std::chrono::nanoseconds after{0};  ///< `restart`: the wait before it
};

/// Immutable; copies share their state.
class actor_strategy {
 public:
  /// `one_for_one()`.
  actor_strategy();
  /// For the library.
  struct rules {
    strategy_options options{};
    bool all = false;
    std::function<judgement(const child_failure&)> custom{};
  };
  explicit actor_strategy(rules r);
  [[nodiscard]] const rules& get() const noexcept { return *rules_; }

 private:
  std::shared_ptr<const rules> rules_;
};

/// The directive applies to the child that failed. All of these throw `std::invalid_argument` for a limit or a wait
/// that makes no sense.
[[nodiscard]] actor_strategy one_for_one(strategy_options options = {});
/// A restart or a stop applies to all children. The siblings of the failed child are suspended until then.
[[nodiscard]] actor_strategy all_for_one(strategy_options options = {});
/// Restarts after a wait that doubles with every failure in a row, without a limit by default.
[[nodiscard]] actor_strategy exponential_backoff(backoff wait = {}, restart_limit limit = unlimited);
/// Restarts after every failure, without a limit.
[[nodiscard]] actor_strategy always_restart();
/// Stops every child that fails: for parents that watch their children and spawn others.
[[nodiscard]] actor_strategy always_stop();
/// A strategy of your own. `judge` is called for every failure, in the parent; if it throws, the parent fails.
[[nodiscard]] actor_strategy custom_strategy(std::function<judgement(const child_failure&)> judge);

/// One line of `decide_by`.
template <class E>
struct exception_rule {
  directive what;
};
template <class E>
[[nodiscard]] constexpr exception_rule<E> on(directive what) noexcept {
  return {what};
}

}  // namespace coppice::actor

namespace coppice::detail {
template <class E>
std::optional<directive> match(const std::exception_ptr& thrown, const exception_rule<E>& rule) {
  try {
    std::rethrow_exception(thrown);
  } catch (const E&) {
    return rule.what;
  } catch (...) {
    return std::nullopt;
  }
}
/// Whether a rule is never reached, because a rule for its base class stands before it.
template <class... Es>
struct shadowed : std::false_type {};
template <class E, class... Es>
struct shadowed<E, Es...> : std::bool_constant<(std::is_base_of_v<E, Es> || ...) || shadowed<Es...>::value> {};
}  // namespace coppice::detail

namespace coppice::actor {

/// Decides by the type of the exception: the first rule that matches. `otherwise` applies if none does, and to failures
/// without an exception. A rule for a base class must come after those for its derived classes.
template <class... Es>
[[nodiscard]] decider decide_by(directive otherwise, exception_rule<Es>... rules) {
  static_assert(!detail::shadowed<Es...>::value, "a rule comes after one for its base class, and is never reached");
  return [=](const child_failure& f) {
    std::optional<directive> found;
    if (f.what) static_cast<void>(((found = detail::match(f.what, rules)) || ...));
    return found.value_or(otherwise);
  };
}

/// Published on the event stream when a parent, or the guardian of a top-level actor, has decided, before the decision
/// is carried out.
struct supervision_event {
  pid parent;  ///< the failed actor itself if its guardian has decided
  pid child;
  std::string name;  ///< of a child: as given at its spawn; of a top-level actor: as registered; empty: none
  exit_reason reason;
  directive what = directive::restart;
  std::chrono::nanoseconds after{0};
};

}  // namespace coppice::actor
