#pragma once
/// What a supervisor has to know about a child: its id, how it is started, when it is restarted, how it is stopped.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <coppice/base/option_text.hpp>
#include <coppice/runtime/spawn.hpp>
#include <coppice/spec/backoff.hpp>
#include <coppice/spec/description.hpp>
#include <coppice/spec/detail/boxed.hpp>
#include <coppice/spec/restart.hpp>
#include <coppice/spec/shutdown.hpp>
#include <coppice/spec/spec_fault.hpp>

namespace coppice {

enum class child_type : std::uint8_t {
  worker,
  supervisor,
  actor,  ///< supervises the actors it has spawned
};
[[nodiscard]] std::string_view to_string(child_type type) noexcept;

/// 5 s for a worker or an actor, without limit for a supervisor.
[[nodiscard]] constexpr shutdown default_shutdown(child_type type) noexcept {
  return type == child_type::supervisor ? shutdown::infinity() : shutdown{std::chrono::seconds{5}};
}

/// When a supervisor ends because its significant children have ended.
enum class auto_shutdown : std::uint8_t {
  never,
  any_significant,  ///< when one of them has ended by itself and is not restarted
  all_significant,  ///< when all of them are down, and the last one has ended by itself and is not restarted
};
[[nodiscard]] std::string_view to_string(auto_shutdown when) noexcept;

/// What a start function of your own returns: the pid, or `ignored` if there is nothing to start, or the error.
struct ignored {};
using start_result = std::variant<pid, ignored, error>;

namespace detail {

/// How a child is started, the first time and at each restart. Immutable, and shared by the copies of its spec.
class recipe {
 public:
  enum class kind : std::uint8_t {
    handshake,  ///< a server: it reports when its `init` is done
    immediate,  ///< a function: its start is done as soon as it is spawned
    function,   ///< a start function of the user, which runs in the supervisor
  };
  explicit recipe(kind k) noexcept : how{k} {}
  virtual ~recipe() = default;
  recipe(const recipe&) = delete;
  recipe& operator=(const recipe&) = delete;

  /// For `handshake` and `immediate`. Throws what copying the arguments throws, and `std::bad_alloc`.
  [[nodiscard]] virtual result<pid> spawn(kernel& k, birth&& with) const;
  /// For `function`.
  [[nodiscard]] virtual task<start_result> run(self& supervisor) const;
  /// What the child is, for people.
  [[nodiscard]] virtual description describe() const;
  /// Adds the faults of the supervisor spec that the child is started with, if there is one. `path` leads to the child.
  virtual void find_faults(const std::vector<std::string>& path, std::vector<spec_fault>& into) const;

  const kind how;
};

}  // namespace detail

/// The start of a child, made by `child`. Empty by default, which no supervisor accepts.
class child_start {
 public:
  child_start() = default;
  explicit child_start(std::shared_ptr<const detail::recipe> r) noexcept : recipe_{std::move(r)} {}
  explicit operator bool() const noexcept { return recipe_ != nullptr; }
  /// What the child is, for people. The kind is `unknown` if the start is empty.
  [[nodiscard]] description describe() const;
  /// For the library, like `kind`. The start must not be empty.
  [[nodiscard]] const detail::recipe& how() const noexcept { return *recipe_; }
  [[nodiscard]] detail::recipe::kind kind() const noexcept { return recipe_->how; }

 private:
  std::shared_ptr<const detail::recipe> recipe_;
};

/// The settings of a child that differ from the defaults. An empty text or optional leaves the setting as it is. To
/// remove a name, a backoff or a mailbox that a type states, set the field of the `child_spec`.
template <class Text>
struct child_settings {
  Text id{};
  /// The name under which the process is registered.
  Text name{};
  std::optional<coppice::restart> restart{};
  std::optional<coppice::shutdown> shutdown{};
  std::optional<child_type> type{};
  std::optional<bool> significant{};
  /// How long to wait before each restart.
  std::optional<coppice::backoff> backoff{};
  /// Also retry a start that fails while the supervisor itself starts. Needs a backoff.
  std::optional<bool> retry_first_start{};
  /// If the start takes longer, the process is killed, and the start has failed.
  std::optional<std::chrono::nanoseconds> start_within{};
  /// How many messages may wait for the process.
  std::optional<coppice::mailbox> mailbox{};
};

/// What a type states about itself: `static constexpr child_defaults supervision{.restart = restart::transient};`. Its
/// texts are views of literals.
using child_defaults = child_settings<std::string_view>;
/// What a place of use changes: `child<T>(...).with({.id = "second"})`. Owns its texts, so it may be built from pieces
/// and kept.
using child_options = child_settings<option_text>;

struct child_spec {
  /// Unique among the children of a supervisor. A dynamic supervisor does not require that.
  std::string id{};
  child_start start{};
  coppice::restart restart = coppice::restart::permanent;
  child_type type = child_type::worker;
  bool significant = false;
  /// True: a start that fails while the supervisor itself starts is retried after the backoff, and counts for the limit
  /// of restarts, as a failed restart does. The start of the supervisor waits meanwhile. Needs a backoff.
  bool retry_first_start = false;
  /// Default: 5 s for a worker or an actor, without limit for a supervisor.
  std::optional<coppice::shutdown> shutdown{};
  /// The name under which the process is registered. Default: none.
  detail::boxed_text name{};
  /// How long to wait before each restart. Default: no wait.
  detail::boxed<coppice::backoff> backoff{};
  /// If the start takes longer, the process is killed, and the start has failed. Default: without limit.
  std::chrono::nanoseconds start_within = forever;
  /// How many messages may wait for the process. Of an actor, this replaces the mailbox of its props. Default: no
  /// limit.
  detail::boxed<coppice::mailbox> mailbox{};

  /// A copy with some settings changed.
  [[nodiscard]] child_spec with(const child_options& changes) const&;
  [[nodiscard]] child_spec with(const child_options& changes) &&;
};

namespace detail {
[[nodiscard]] child_spec with_defaults(child_spec spec, const child_defaults& defaults);
}

/// What the child is, for people.
[[nodiscard]] inline description describe(const child_spec& spec) { return spec.start.describe(); }

/// All faults for which a supervisor would refuse these children, in the order of the children, each with its path.
/// Faults below a child that is a supervisor are included if its spec is known before the start: that of
/// `child<supervisor>(spec)` is, that of a type with an `init` is not. `path` leads to the supervisor.
[[nodiscard]] std::vector<spec_fault> find_faults(const std::vector<child_spec>& specs,
                                                  auto_shutdown when = auto_shutdown::never,
                                                  const std::vector<std::string>& path = {});
/// Whether a supervisor would accept this child. The text of the error lists all faults, each with its id and field;
/// its code is that of the first: `invalid`, `bad_combination`, or, below a child that is a supervisor, also
/// `duplicate_id`.
[[nodiscard]] result<void> check(const child_spec& spec, auto_shutdown when = auto_shutdown::never);
/// Whether a supervisor would accept these children together. Error: also `duplicate_id`.
[[nodiscard]] result<void> check(const std::vector<child_spec>& specs, auto_shutdown when = auto_shutdown::never);

}  // namespace coppice
