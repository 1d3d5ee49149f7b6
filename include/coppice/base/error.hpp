#pragma once
/// Expected failures as values: `result<T>` is a `T` or an `error`, and an error is a code, a text for people and
/// optionally the error that caused it.
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

#include <coppice/base/cxx23.hpp>

namespace coppice {

enum class errc : unsigned char {
  timeout,       ///< no answer within the time given
  noproc,        ///< there is no such process (any more)
  noconnection,  ///< the node of that process can't be reached
  calling_self,  ///< a process called itself and would wait for ever
  exited,        ///< the process ended before it answered; the text has its exit reason
  no_reply,      ///< the request was dropped without an answer by a process that lives on
  name_taken,    ///< another live process has that name
  invalid,       ///< a value that makes no sense here
  stopped,       ///< the runtime is stopping
  // Starting and supervising:
  start_failed,     ///< a process said no, failed or ended while it was being started; the text or the cause says why
  ignored,          ///< a process had nothing to do, and ended while it was being started
  already_started,  ///< there is a running child of that id
  already_present,  ///< there is a child of that id, which does not run
  not_found,        ///< there is no child of that id
  running,          ///< the child runs, so it can't be started or deleted
  restarting,       ///< the child is about to be restarted
  capacity,         ///< there are as many as there may be
  duplicate_id,     ///< two children of one supervisor have the same id
  bad_combination,  ///< two settings that can't be had together
};

/// The code as a word, for example `"noproc"`.
[[nodiscard]] std::string_view to_string(errc code) noexcept;

/// Thread safety: distinct objects may be used from different threads; copies share an immutable text.
class error {
 public:
  explicit error(errc code) noexcept : code_{code} {}
  error(errc code, std::string text);
  error(errc code, std::string text, error cause);

  [[nodiscard]] errc code() const noexcept { return code_; }
  /// What happened, to whom; empty when the code says it all.
  [[nodiscard]] std::string_view text() const noexcept;
  /// The error below this one, or null.
  [[nodiscard]] const error* cause() const noexcept;
  /// The first error of the chain; this one when it has no cause.
  [[nodiscard]] const error& root() const noexcept;
  /// The whole chain on one line: `timeout: call to <1.4.0>: noconnection: ...`.
  [[nodiscard]] std::string to_string() const;

  /// Same code and same text; causes are not compared.
  friend bool operator==(const error& a, const error& b) noexcept { return a.code_ == b.code_ && a.text() == b.text(); }
  friend std::ostream& operator<<(std::ostream& out, const error& e);

 private:
  struct detail;
  errc code_;
  std::shared_ptr<const detail> detail_;
};

template <class T>
using result = std::expected<T, error>;

/// `return fail(errc::timeout, "no answer from the database");`
[[nodiscard]] std::unexpected<error> fail(errc code, std::string text = {});

}  // namespace coppice
