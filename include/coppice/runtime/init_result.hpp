#pragma once
#include <optional>

#include <coppice/base/error.hpp>
#include <coppice/runtime/exit_reason.hpp>

namespace coppice {

/// The answer of a server's `init`.
///
///     coppice::init_result init(coppice::self& me) {
///       if (!enabled) return coppice::init_result::ignore();
///       if (auto opened = open(path); !opened) return coppice::init_result::fail(opened.error());
///       return coppice::init_result::ok();
///     }
class init_result {
 public:
  enum class kind : unsigned char { ok, ignore, fail, stop };

  [[nodiscard]] static init_result ok() noexcept { return init_result{kind::ok}; }
  /// There is nothing to do: the process ends normally, and its starter goes on without it.
  [[nodiscard]] static init_result ignore() noexcept { return init_result{kind::ignore}; }
  /// The start failed with this error: the process ends normally, and only its starter gets the error.
  [[nodiscard]] static init_result fail(error why) {
    init_result r{kind::fail};
    r.why_ = std::move(why);
    return r;
  }
  /// The start failed, and the process ends with `reason`: linked processes are notified too.
  [[nodiscard]] static init_result stop(exit_reason reason) {
    init_result r{kind::stop};
    r.reason_ = std::move(reason);
    return r;
  }
  /// The same, with an error for the starter.
  [[nodiscard]] static init_result stop(exit_reason reason, error why) {
    init_result r = stop(std::move(reason));
    r.why_ = std::move(why);
    return r;
  }

  [[nodiscard]] kind what() const noexcept { return kind_; }
  /// The error for the starter; null: the starter gets the exit reason only.
  [[nodiscard]] const error* why() const noexcept { return why_ ? &*why_ : nullptr; }
  /// The exit reason of the process if the start failed.
  [[nodiscard]] const exit_reason& reason() const noexcept { return reason_; }

 private:
  explicit init_result(kind k) noexcept : kind_{k} {}
  kind kind_;
  std::optional<error> why_;
  exit_reason reason_;
};

}  // namespace coppice
