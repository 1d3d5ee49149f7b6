#pragma once
/// What a supervisor has to know of a child: who it is, how it is started, when it is restarted, how it is stopped.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <coppice/runtime/spawn.hpp>
#include <coppice/spec/backoff.hpp>
#include <coppice/spec/restart.hpp>
#include <coppice/spec/shutdown.hpp>

namespace coppice {

enum class child_type : std::uint8_t {
  worker,
  supervisor,
  actor,  ///< supervises the actors it has spawned
};
[[nodiscard]] std::string_view to_string(child_type type) noexcept;

/// 5 s for a worker, without end for a supervisor.
[[nodiscard]] constexpr shutdown default_shutdown(child_type type) noexcept {
  return type == child_type::supervisor ? shutdown::infinity() : shutdown{std::chrono::seconds{5}};
}

/// When a supervisor ends because its significant children have.
enum class auto_shutdown : std::uint8_t {
  never,
  any_significant,  ///< when one of them has ended and will not be restarted
  all_significant,  ///< when all of them have
};
[[nodiscard]] std::string_view to_string(auto_shutdown when) noexcept;

/// What a start function of your own answers.
struct ignored {};
using start_result = std::variant<pid, ignored, error>;

namespace detail {

/// How a child is started, again and again. Immutable, shared by the copies of its spec.
class recipe {
 public:
  enum class kind : std::uint8_t {
    handshake,  ///< a server: it says when it has begun
    immediate,  ///< a function: it has begun when it was spawned
    function,   ///< a function of the user's does it all, in the supervisor
  };
  explicit recipe(kind k) noexcept : how{k} {}
  virtual ~recipe() = default;
  recipe(const recipe&) = delete;
  recipe& operator=(const recipe&) = delete;

  /// Of the first two kinds. Throws what copying the arguments throws, and `std::bad_alloc`.
  [[nodiscard]] virtual result<pid> spawn(kernel& k, birth&& with) const;
  /// Of the third.
  [[nodiscard]] virtual task<start_result> run(self& supervisor) const;

  const kind how;
};

}  // namespace detail

/// The start of a child, made by `child`. Empty by default, which no supervisor takes.
class child_start {
 public:
  child_start() = default;
  explicit child_start(std::shared_ptr<const detail::recipe> r) noexcept : recipe_{std::move(r)} {}
  explicit operator bool() const noexcept { return recipe_ != nullptr; }
  /// For the library.
  [[nodiscard]] const detail::recipe& how() const noexcept { return *recipe_; }

 private:
  std::shared_ptr<const detail::recipe> recipe_;
};

/// Settings of a child that differ from the defaults, beside its type (`static constexpr child_options supervision`) or
/// where it is used (`child<T>(...).with({.id = "second"})`). The texts are only referred to, until `with` copies them:
/// build one from pieces in that call, not before it.
struct child_options {
  std::string_view id{};
  /// The name the process is registered under.
  std::string_view name{};
  std::optional<coppice::restart> restart{};
  std::optional<coppice::shutdown> shutdown{};
  std::optional<child_type> type{};
  std::optional<bool> significant{};
  /// Wait before each restart, as it says.
  std::optional<coppice::backoff> backoff{};
  /// A start that takes longer is given up, and has failed.
  std::optional<std::chrono::nanoseconds> start_within{};
};

struct child_spec {
  /// Unique among the children of a supervisor (a dynamic one does not care).
  std::string id{};
  child_start start{};
  coppice::restart restart = coppice::restart::permanent;
  /// Default: 5 s for a worker, without end for a supervisor.
  std::optional<coppice::shutdown> shutdown{};
  child_type type = child_type::worker;
  bool significant = false;
  /// The name the process is registered under. Default: none.
  std::string name{};
  std::optional<coppice::backoff> backoff{};
  /// Default: however long it takes.
  std::chrono::nanoseconds start_within = forever;

  /// The same with some settings changed.
  [[nodiscard]] child_spec with(const child_options& changes) const&;
  [[nodiscard]] child_spec with(const child_options& changes) &&;
};

/// Whether a supervisor would take this child: `invalid` or `bad_combination`, with the id and the field named.
[[nodiscard]] result<void> check(const child_spec& spec, auto_shutdown when = auto_shutdown::never);
/// Whether a supervisor would take all of them together, in addition `duplicate_id`. The first that is wrong counts.
[[nodiscard]] result<void> check(const std::vector<child_spec>& specs, auto_shutdown when = auto_shutdown::never);

}  // namespace coppice
