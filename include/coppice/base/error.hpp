#pragma once
/// Expected failures as values: `result<T>` is a `T` or an `error`, and an error is a code, a text for people and
/// optionally the error that caused it.
///
/// Codes are open: a library adds codes of its own without changing this header.
///
///     enum class cluster_errc : unsigned char { not_a_member, lease_lost };
///     constexpr std::string_view to_string(cluster_errc code) noexcept { ... }   // a switch
///     template <>
///     struct coppice::error_category<cluster_errc> {
///       static constexpr std::string_view name = "cluster";
///       static constexpr cluster_errc last = cluster_errc::lease_lost;
///     };
///     return fail(cluster_errc::lease_lost, "node 3 has renewed too late");
#include <array>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <coppice/base/cxx23.hpp>

namespace coppice {

/// The codes that all libraries have in common.
enum class errc : unsigned char {
  timeout,          ///< no answer within the time given
  noproc,           ///< there is no such process (any more)
  noconnection,     ///< the node of that process can't be reached
  calling_self,     ///< a process called itself and would wait for ever
  exited,           ///< the process ended before it answered; the text has its exit reason
  no_reply,         ///< the receiver dropped the request without an answer, and has not ended
  name_taken,       ///< a live process has that name
  invalid,          ///< a value that makes no sense here
  stopped,          ///< the runtime is stopping, or an actor that is to start a child is stopping or restarting
  start_failed,     ///< a process refused to start, failed or ended during its start; the text or the cause says why
  ignored,          ///< a process had nothing to do, and ended during its start
  not_found,        ///< nothing has that id, for example no child or no handler
  capacity,         ///< a limit is reached, for example a full mailbox or process table, or `max_children`
  duplicate_id,     ///< that id is in use, for example by another child of the same spec or by another handler
  bad_combination,  ///< two settings that exclude each other
};

/// The code as a word, for example `"noproc"`.
[[nodiscard]] constexpr std::string_view to_string(errc code) noexcept {
  switch (code) {
    case errc::timeout: return "timeout";
    case errc::noproc: return "noproc";
    case errc::noconnection: return "noconnection";
    case errc::calling_self: return "calling_self";
    case errc::exited: return "exited";
    case errc::no_reply: return "no_reply";
    case errc::name_taken: return "name_taken";
    case errc::invalid: return "invalid";
    case errc::stopped: return "stopped";
    case errc::start_failed: return "start_failed";
    case errc::ignored: return "ignored";
    case errc::not_found: return "not_found";
    case errc::capacity: return "capacity";
    case errc::duplicate_id: return "duplicate_id";
    case errc::bad_combination: return "bad_combination";
  }
  return "unknown";
}

/// The codes of one library: an enumeration whose values count from 0 to `last`.
template <class E>
struct error_category;
template <>
struct error_category<errc> {
  static constexpr std::string_view name = "coppice";
  static constexpr errc last = errc::bad_combination;
};

/// A code of any category: one pointer wide, compared and copied like a pointer.
class error_code {
 public:
  template <class E>
    requires requires { error_category<E>::last; }
  constexpr error_code(E code) noexcept  // NOLINT(google-explicit-constructor): `fail(errc::timeout)`
      : entry_{&table<E>[index_of(code)]} {}

  /// The code as a word, for example `"noproc"`. Words of different categories may be equal; their codes are not.
  [[nodiscard]] constexpr std::string_view word() const noexcept { return entry_->word; }
  /// The name of the category, for example `"coppice"`.
  [[nodiscard]] constexpr std::string_view category() const noexcept { return *entry_->category; }
  /// The code as a value of `E`, for a switch; nothing if it is a code of another category.
  template <class E>
  [[nodiscard]] constexpr std::optional<E> as() const noexcept {
    if (entry_->category != &error_category<E>::name) return std::nullopt;
    return static_cast<E>(entry_ - table<E>.data());
  }
  friend constexpr bool operator==(error_code, error_code) noexcept = default;
  friend std::ostream& operator<<(std::ostream& out, error_code code);

 private:
  struct entry {
    std::string_view word;
    const std::string_view* category = nullptr;  // its address identifies the category
  };
  template <class E>
  static constexpr std::size_t size_of = std::to_underlying(error_category<E>::last) + 1;
  /// A value beyond `last`, for example from a newer program, gets the entry behind all others: "unknown".
  template <class E>
  static constexpr std::size_t index_of(E code) noexcept {
    const auto at = static_cast<std::size_t>(std::to_underlying(code));
    return at < size_of<E> ? at : size_of<E>;
  }
  template <class E>
  static consteval auto make_table() {
    std::array<entry, size_of<E> + 1> all{};
    for (std::size_t i = 0; i < size_of<E>; ++i) all[i] = {to_string(static_cast<E>(i)), &error_category<E>::name};
    all[size_of<E>] = {"unknown", &error_category<E>::name};
    return all;
  }
  template <class E>
  static constexpr auto table = make_table<E>();
  const entry* entry_;
};
[[nodiscard]] constexpr std::string_view to_string(error_code code) noexcept { return code.word(); }

/// Thread safety: distinct objects may be used from different threads; copies share an immutable text.
class error {
 public:
  explicit error(error_code code) noexcept : code_{code} {}
  error(error_code code, std::string text);
  error(error_code code, std::string text, error cause);

  [[nodiscard]] error_code code() const noexcept { return code_; }
  /// What happened, to which process or value; empty when the code says it all.
  [[nodiscard]] std::string_view text() const noexcept;
  /// The error that caused this one, or null.
  [[nodiscard]] const error* cause() const noexcept;
  /// The error at the end of the chain of causes; this one when it has no cause.
  [[nodiscard]] const error& root() const noexcept;
  /// The whole chain on one line: `timeout: call to <1.4.0>: noconnection: ...`.
  [[nodiscard]] std::string to_string() const;

  /// Same code and same text; causes are not compared.
  friend bool operator==(const error& a, const error& b) noexcept { return a.code_ == b.code_ && a.text() == b.text(); }
  friend std::ostream& operator<<(std::ostream& out, const error& e);

 private:
  struct detail;
  error_code code_;
  std::shared_ptr<const detail> detail_;
};

template <class T>
using result = std::expected<T, error>;

/// `return fail(errc::timeout, "no answer from the database");`
[[nodiscard]] std::unexpected<error> fail(error_code code, std::string text = {});

}  // namespace coppice
