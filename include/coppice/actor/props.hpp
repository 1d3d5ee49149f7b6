#pragma once
/// How an actor is made: its class, the arguments of its constructor, and settings that differ from the defaults.
///
///     me.spawn(props<counter>(41));
///     me.spawn(props<counter>(41).with({.strategy = all_for_one(), .mailbox = mailbox{.capacity = 1000}}));
///     me.spawn(props<counter>::from([=] { return counter{read(path)}; }));
#include <coppice/actor/context.hpp>

namespace coppice::actor {

struct actor_options {
  /// What this actor decides when one of its children fails. Default: `one_for_one()`. A class may replace the decider
  /// of the strategy by a member `directive decide(const child_failure&)`, with a `context&` as an optional second
  /// parameter.
  std::optional<actor_strategy> strategy{};
  /// For top-level actors: what is decided when the actor itself fails. Default: `one_for_one()`. An actor that is the
  /// child of a supervisor ends by default with the reason of its failure, and the supervisor decides.
  std::optional<actor_strategy> guardian{};
  std::optional<actor::mailbox> mailbox{};
  /// `on_receive`, `on_send` and `on_init` are appended to those that the props already have.
  std::vector<receive_middleware> on_receive{};
  std::vector<send_middleware> on_send{};
  /// These run in the new actor, before its first instance is made. An exception is a failure of the actor; a restart
  /// after it runs all of them again.
  std::vector<std::function<void(context&)>> on_init{};
  /// Whether the children keep running when this actor is restarted. Default: they are stopped, and the restart waits
  /// until they have ended.
  std::optional<bool> keep_children{};
  /// Whether this actor receives `terminated` for every child that ends, as if it had watched the child from its spawn
  /// on; `unwatch` withdraws that for one child. Default: only for the children that it watches.
  std::optional<bool> watch_children{};
  /// How long the parent waits for this actor to stop before the parent kills it; or `shutdown::brutal_kill()`, or
  /// `shutdown::infinity()`. The time that the actor's own children take is not included, because each has a limit of
  /// its own. A poisoned actor has no limit while it handles its mail. Default: 5 s.
  std::optional<coppice::shutdown> shutdown{};
  /// How long this actor waits for a child that it has killed before it abandons the child: the process of the child
  /// ends although its code does not return. Default: 5 s.
  std::optional<std::chrono::nanoseconds> abandon_after{};
};

}  // namespace coppice::actor

namespace coppice::detail {
/// Throws `std::invalid_argument` for values that make no sense.
void change(actor_settings& s, const actor_options& by);
}  // namespace coppice::detail

namespace coppice::actor {

/// Immutable. The arguments are kept by value and copied for every instance.
template <class A>
class props {
 public:
  template <class... Args>
    requires(sizeof...(Args) != 1 || !(std::is_same_v<std::decay_t<Args>, props> || ...))
  explicit props(Args&&... args) {
    static_assert(std::is_constructible_v<A, const std::decay_t<Args>&...> ||
                      std::is_constructible_v<A, context&, const std::decay_t<Args>&...>,
                  "the actor's class has no constructor for these arguments, with or without a context& before them; "
                  "they are kept, and copied for each instance");
    auto made = std::make_shared<detail::actor_settings>();
    made->make = [kept = std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...)](void* where, context& me) {
      std::apply(
          [&](const std::decay_t<Args>&... a) {
            if constexpr (std::is_constructible_v<A, const std::decay_t<Args>&...>)
              ::new (where) A(a...);
            else
              ::new (where) A(me, a...);
          },
          kept);
    };
    settings_ = std::move(made);
  }
  /// From a function that returns an `A`. It is called for every instance, in its actor: on any thread, and on several
  /// at once if several actors are made from these props.
  template <class F>
    requires(std::is_invocable_r_v<A, const F&> || std::is_invocable_r_v<A, const F&, context&>)
  [[nodiscard]] static props from(F producer) {
    auto made = std::make_shared<detail::actor_settings>();
    made->make = [producer](void* where, [[maybe_unused]] context& me) {
      if constexpr (std::is_invocable_r_v<A, const F&>)
        ::new (where) A(producer());
      else
        ::new (where) A(producer(me));
    };
    return with_settings(std::move(made));
  }
  /// A copy with some settings changed. Throws `std::invalid_argument` for values that make no sense.
  [[nodiscard]] props with(const actor_options& changes) const {
    auto changed = std::make_shared<detail::actor_settings>(*settings_);
    detail::change(*changed, changes);
    return with_settings(std::move(changed));
  }

  /// For the library.
  [[nodiscard]] const std::shared_ptr<const detail::actor_settings>& settings() const noexcept { return settings_; }

 private:
  struct as_they_are {};
  props(as_they_are, std::shared_ptr<const detail::actor_settings> s) noexcept : settings_{std::move(s)} {}
  [[nodiscard]] static props with_settings(std::shared_ptr<const detail::actor_settings> s) noexcept {
    return props{as_they_are{}, std::move(s)};
  }
  std::shared_ptr<const detail::actor_settings> settings_;
};

/// An actor without a class of its own: `props<behaving>([] { return behaviour{[](hello, context& me) { ... }}; })`.
class behaving {
 public:
  using protocol = coppice::protocol<>;
  /// `initial` returns the first behaviour of every instance.
  explicit behaving(context& me, const std::function<behaviour()>& initial) { me.become_first(initial()); }
  /// Never called. It lets any message be sent through an `actor_ref<behaving>`; the behaviour handles the message.
  void handle(any_message) const {}
};

}  // namespace coppice::actor
