#pragma once
/// What a parent answers when a child fails.
///
///     one_for_one()                                                      // restart it, up to 10 times in 10 s
///     one_for_one({.limit = {.restarts = 3, .within = 1min},
///                  .decide = decide_by(directive::escalate, on<io_error>(directive::resume))})
///     all_for_one({.wait = backoff{.first = 200ms, .cap = 30s, .jitter = 0.2}})
///
/// A child that fails more often than the limit allows is stopped, with the reason of its last failure. A limit belongs
/// to one child, also in `all_for_one`, where the one that failed counts.
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include <coppice/runtime/call.hpp>
#include <coppice/spec/backoff.hpp>
#include <coppice/spec/restart_window.hpp>

namespace coppice {

enum class directive : std::uint8_t {
  resume,    ///< it goes on with the next message, its state as it is
  restart,   ///< a new instance takes its place, behind the same pid, with the same mailbox
  stop,      ///< it ends with the reason of its failure
  escalate,  ///< the parent itself fails with that reason
};
[[nodiscard]] std::string_view to_string(directive d) noexcept;

/// What a parent knows of the failure of its child.
struct child_failure {
  pid child;
  std::string_view name;     ///< as given at its spawn; empty: none
  exit_reason reason;        ///< with the type and the text of the exception, and the type of the message
  std::exception_ptr what;   ///< null: it was none
  std::size_t restarts = 0;  ///< that it had before, within the time of the limit if there is one
};
/// Runs in the parent. One strategy may be that of many parents: then it runs on several threads at once.
using decider = std::function<directive(const child_failure&)>;

/// As often as it takes.
inline constexpr restart_limit unlimited{.restarts = std::numeric_limits<int>::max(), .within = forever};

struct strategy_options {
  /// `restarts = 0`: it is never restarted, but stopped. `within = forever`: counted over its whole life.
  restart_limit limit{.restarts = 10, .within = std::chrono::seconds{10}};
  /// Default: restart, whatever it was. What it throws fails the parent, as if it had answered `escalate`.
  decider decide{};
  /// How long a child waits for its restart, with its mail; `reset_after` is the window in which a failure is one more
  /// in a row. Default: not at all.
  std::optional<backoff> wait{};
};

/// What a strategy of your own answers.
struct judgement {
  directive what = directive::restart;
  bool all = false;                   ///< `restart` and `stop`: all children, not just the one that failed
  std::chrono::nanoseconds after{0};  ///< `restart`: so much later
};

/// A value; copies share what is behind it, which does not change.
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

/// What is decided is done to the child that failed. All throw `std::invalid_argument` for a limit or a wait that makes
/// no sense.
[[nodiscard]] actor_strategy one_for_one(strategy_options options = {});
/// A restart and a stop are done to all children; the others are suspended first.
[[nodiscard]] actor_strategy all_for_one(strategy_options options = {});
/// Restarts after a wait that doubles with every failure in a row. Without a limit, unless one is given.
[[nodiscard]] actor_strategy exponential_backoff(backoff wait = {}, restart_limit limit = unlimited);
/// Restarts without a question and without a limit.
[[nodiscard]] actor_strategy always_restart();
/// Stops whatever fails: for parents that watch, and start another one.
[[nodiscard]] actor_strategy always_stop();
/// A strategy of your own, which must answer every failure. It runs in the parent, and may throw as a decider may.
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

namespace detail {
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
/// Whether a rule can't be reached, because one for its base stands before it.
template <class... Es>
struct shadowed : std::false_type {};
template <class E, class... Es>
struct shadowed<E, Es...> : std::bool_constant<(std::is_base_of_v<E, Es> || ...) || shadowed<Es...>::value> {};
}  // namespace detail

/// By the type of the exception: the first rule that fits, `otherwise` when none does, also for failures without an
/// exception. A rule for a base class must come after those for what is derived from it.
template <class... Es>
[[nodiscard]] decider decide_by(directive otherwise, exception_rule<Es>... rules) {
  static_assert(!detail::shadowed<Es...>::value, "a rule stands behind one for its base class, and is never reached");
  return [=](const child_failure& f) {
    std::optional<directive> found;
    if (f.what) static_cast<void>(((found = detail::match(f.what, rules)) || ...));
    return found.value_or(otherwise);
  };
}

/// On the event stream, before it is done: what a parent, or the guardian of a top-level actor, has decided.
struct supervision_event {
  pid parent;  ///< the actor itself, when its guardian has decided
  pid child;
  std::string name;  ///< of a child as given at its spawn, of a top-level actor as registered; empty: none
  exit_reason reason;
  directive what = directive::restart;
  std::chrono::nanoseconds after{0};
};

}  // namespace coppice
