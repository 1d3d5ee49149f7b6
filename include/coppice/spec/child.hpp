#pragma once
/// `child<T>(args...)` makes the spec of a child from what its type states about itself.
///
///     struct cache { ... };                                             // states nothing: permanent, 5 s, a worker
///     struct importer {                                                 // states what differs
///       static constexpr coppice::child_defaults supervision{.restart = coppice::restart::transient};
///     };
///     struct pool {                                                     // makes the whole spec itself
///       static coppice::child_spec child_spec(int size);
///     };
///     supervisor_spec tree{.children = {child<cache>(), child<importer>("in.csv"), child<pool>(8).with({.id = "p"})}};
///
/// Arguments are stored by value and copied at every start, so a restart begins from the initial state.
///
/// A type may state `static constexpr std::string_view kind` and `static std::vector<fact> describe(args...)`, which
/// tree views show.
#include <tuple>

#include <coppice/spec/child_spec.hpp>

namespace coppice {
namespace detail {

/// The name of a type without its namespaces.
[[nodiscard]] constexpr std::string_view short_name(std::string_view name) noexcept {
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' || name[i] == '(' || name[i] == '{') ++depth;
    if (name[i] == '>' || name[i] == ')' || name[i] == '}') --depth;
    if (depth == 0 && name[i] == ':') start = i + 1;
  }
  return name.substr(start);
}

template <class Spec>
[[nodiscard]] std::vector<spec_fault> faults_of_spec(const Spec& spec, const std::vector<std::string>& path) {
  return find_faults(spec, path);
}

/// The start of an object of type `T`.
template <class T, class... Args>
class object_recipe final : public recipe {
 public:
  template <class... Given>
  explicit object_recipe(Given&&... given) : recipe{kind::handshake}, args_(std::forward<Given>(given)...) {}
  [[nodiscard]] description describe() const override {
    description about{.kind = "server", .facts = {{"type", std::string{type_name<T>()}}}};
    if constexpr (requires { std::string{T::kind}; }) about.kind = std::string{T::kind};
    if constexpr (requires(const Args&... args) { std::vector<fact>{T::describe(args...)}; })
      std::apply([&](const Args&... args) { append(about.facts, T::describe(args...)); }, args_);
    return about;
  }
  void find_faults(const std::vector<std::string>& path, std::vector<spec_fault>& into) const override {
    std::apply([&](const Args&... args) { (add_faults_of(args, path, into), ...); }, args_);
  }
  [[nodiscard]] result<pid> spawn(kernel& k, birth&& with) const override {
    return std::apply([&](const Args&... args) { return spawn_object<T>(k, std::move(with), args...); }, args_);
  }

 private:
  static void append(std::vector<fact>& to, std::vector<fact> more) {
    for (fact& f : more) to.push_back(std::move(f));
  }
  /// Adds the faults of an argument that is the spec of a supervisor.
  template <class A>
  static void add_faults_of(const A& argument, const std::vector<std::string>& path, std::vector<spec_fault>& into) {
    if constexpr (requires { typename A::supervised_by; })
      for (spec_fault& f : faults_of_spec(argument, path)) into.push_back(std::move(f));
  }
  std::tuple<Args...> args_;
};

/// The start of a process whose body is a function.
template <class F, class... Args>
class body_recipe final : public recipe {
 public:
  template <class... Given>
  explicit body_recipe(F body, Given&&... given)
      : recipe{kind::immediate}, body_{body}, args_(std::forward<Given>(given)...) {}
  [[nodiscard]] result<pid> spawn(kernel& k, birth&& with) const override {
    return std::apply([&](const Args&... args) { return spawn_coroutine(k, std::move(with), F{body_}, args...); },
                      args_);
  }

 private:
  F body_;
  std::tuple<Args...> args_;
};

/// A start function of the user.
template <class F, class... Args>
class function_recipe final : public recipe {
 public:
  template <class... Given>
  explicit function_recipe(F start, Given&&... given)
      : recipe{kind::function}, start_{start}, args_(std::forward<Given>(given)...) {}
  [[nodiscard]] task<start_result> run(self& supervisor) const override {
    return std::apply([&](const Args&... args) { return start_(supervisor, Args(args)...); }, args_);
  }

 private:
  F start_;
  std::tuple<Args...> args_;
};

/// The class of supervisor that runs a spec of this type, or a `std::optional` of it.
template <class Spec>
struct supervised_by;
template <class Spec>
  requires requires { typename Spec::supervised_by; }
struct supervised_by<Spec> {
  using type = typename Spec::supervised_by;
};
template <class Spec>
struct supervised_by<std::optional<Spec>> : supervised_by<Spec> {};
/// A type that describes a supervisor: its static `init` returns the spec of the supervisor.
template <class T, class... Args>
concept supervisor_module =
    requires(const std::decay_t<Args>&... args) { typename supervised_by<decltype(T::init(args...))>::type; };
/// `T::init` with its arguments. Each new process of the supervisor calls it once.
template <class T, class... Args>
struct module_init {
  std::tuple<Args...> args;
  auto operator()() const {
    return std::apply([](const Args&... a) { return T::init(a...); }, args);
  }
};

template <class T>
concept states_supervision = requires { T::supervision; };
template <class T, class... Args>
concept owns_child_spec = requires(Args&&... args) {
  { T::child_spec(std::forward<Args>(args)...) } -> std::convertible_to<coppice::child_spec>;
};
/// A class with a `terminate` that does not run when its supervisor stops it, and that does not say that this is meant.
template <class T>
concept terminate_in_vain = has_terminate<T> && !requires { T::traps_exits; };
template <class F, class... Args>
concept start_function = std::is_invocable_r_v<task<start_result>, F, self&, std::decay_t<Args>...>;

/// Refuses arguments that a child cannot be started from again.
template <class... Args>
consteval bool can_be_kept() {
  constexpr bool copied = (std::is_copy_constructible_v<std::decay_t<Args>> && ...);
  constexpr bool owned = !(is_view<std::decay_t<Args>> || ...);
  static_assert(copied,
                "the arguments of a child are kept and copied at every start, and one of these cannot be copied: "
                "pass what it is made from, or a std::shared_ptr");
  static_assert(owned,
                "the arguments of a child are kept for its restarts: a std::string_view or std::span would "
                "dangle, so pass a std::string or a std::vector");
  return copied && owned;
}
/// Refuses a function that is neither a body nor a start function.
template <class F, class... Args>
consteval bool can_be_a_child() {
  if constexpr (start_function<F, Args...>) {
    return can_be_kept<Args...>();
  } else if constexpr (can_be_kept<Args...>()) {
    return is_sound_body<F, Args...>();
  } else {
    return false;
  }
}

template <class T>
[[nodiscard]] child_spec derived_spec(std::shared_ptr<const recipe> how) {
  child_spec spec{.id = std::string{short_name(type_name<T>())}, .start = child_start{std::move(how)}};
  if constexpr (states_supervision<T>) {
    static_assert(std::convertible_to<decltype(T::supervision), const child_defaults&>,
                  "`supervision` must be a child_defaults: static constexpr coppice::child_defaults supervision{...};");
    return with_defaults(std::move(spec), T::supervision);
  }
  return spec;
}

/// The recipe of an object. All children of a type without arguments share one recipe, which is never freed.
template <class T, class... Args>
[[nodiscard]] std::shared_ptr<const recipe> recipe_of(Args&&... args) {
  if constexpr (sizeof...(Args) == 0) {
    static const recipe* const shared = new object_recipe<T>{};
    return {std::shared_ptr<const recipe>{}, shared};
  } else {
    return std::make_shared<object_recipe<T, std::decay_t<Args>...>>(std::forward<Args>(args)...);
  }
}

/// What `child<T>(args...)` returns.
template <class T, class... Args>
[[nodiscard]] child_spec spec_of_child(Args&&... args) {
  if constexpr (owns_child_spec<T, Args...>) {
    return T::child_spec(std::forward<Args>(args)...);
  } else if constexpr (can_be_kept<Args...>()) {
    if constexpr (supervisor_module<T, Args...>) {
      using by = typename supervised_by<decltype(T::init(std::declval<const std::decay_t<Args>&>()...))>::type;
      using init = module_init<T, std::decay_t<Args>...>;
      auto spec = derived_spec<T>(std::make_shared<object_recipe<by, init>>(
          init{std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...)}));
      spec.type = child_type::supervisor;
      return spec;
    } else {
      static_assert(object_from<T, Args...>, "there is no constructor of the child's type for these arguments");
      static_assert(has_sound_members<T>());
      return derived_spec<T>(recipe_of<T>(std::forward<Args>(args)...));
    }
  }
}

}  // namespace detail

/// The spec of a child that is a server of type `T`, or a supervisor that `T::init` describes. Every start makes the
/// child from copies of `args`. If there is a `T::child_spec(args...)`, returns what that returns.
template <class T, class... Args>
[[nodiscard]] child_spec child(Args&&... args) {
  return detail::spec_of_child<T>(std::forward<Args>(args)...);
}
/// The same with a warning of the compiler. It is shown where the child is used, also if this header is a system
/// header.
template <class T, class... Args>
  requires detail::terminate_in_vain<T>
[[nodiscard, deprecated("its class has a `terminate`, which does not run when a supervisor stops it, because the class "
                        "does not trap exits; "
                        "state `static constexpr bool traps_exits = true;`, or `= false` if that is meant")]] child_spec
child(Args&&... args) {
  return detail::spec_of_child<T>(std::forward<Args>(args)...);
}

/// The spec of a child that is a function: either a body, `task<> body(self&, args...)`, whose start is done as soon as
/// it is spawned; or a start function, `task<start_result> start(self& supervisor, args...)`, which runs in the
/// supervisor, starts a process linked to it, and returns the pid. The spec has no id; give it one:
/// `child(poll, 5s).with({.id = "poller"})`.
template <class F, class... Args>
  requires(detail::meant_as_body<F, Args...> || detail::start_function<F, Args...>)
[[nodiscard]] child_spec child(F function, Args&&... args) {
  child_spec spec;
  if constexpr (detail::can_be_a_child<F, Args...>()) {
    using recipe =
        std::conditional_t<detail::start_function<F, Args...>, detail::function_recipe<F, std::decay_t<Args>...>,
                           detail::body_recipe<F, std::decay_t<Args>...>>;
    spec.start = child_start{std::make_shared<recipe>(function, std::forward<Args>(args)...)};
  }
  return spec;
}

/// One child of each type: `children_of<database, cache, web_server>()`.
template <class... Ts>
[[nodiscard]] std::vector<child_spec> children_of() {
  return {detail::spec_of_child<Ts>()...};
}

/// Makes specs of children that have their first arguments in common, for example `const auto workers =
/// child_template<worker>(database).with({.restart = restart::temporary});` and then `workers(42)`.
template <class T, class... Common>
class child_template_of {
 public:
  explicit child_template_of(Common... common) : common_(std::move(common)...) {}
  [[nodiscard]] child_template_of with(const child_options& changes) && {
    changes_.push_back(changes);
    return std::move(*this);
  }
  template <class... Args>
  [[nodiscard]] child_spec operator()(Args&&... args) const {
    child_spec spec = std::apply(
        [&](const Common&... common) { return detail::spec_of_child<T>(common..., std::forward<Args>(args)...); },
        common_);
    for (const child_options& c : changes_) spec = std::move(spec).with(c);
    return spec;
  }

 private:
  std::tuple<Common...> common_;
  std::vector<child_options> changes_;
};
template <class T, class... Common>
[[nodiscard]] child_template_of<T, std::decay_t<Common>...> child_template(Common&&... common) {
  return child_template_of<T, std::decay_t<Common>...>{std::forward<Common>(common)...};
}

}  // namespace coppice
