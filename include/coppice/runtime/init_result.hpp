#pragma once
#include <optional>

#include <coppice/base/error.hpp>
#include <coppice/runtime/exit_reason.hpp>

namespace coppice {

/// What the `init` of a server may answer, beyond just returning.
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
  /// There is nothing to do here: the process ends normally, and whoever starts it goes on without one.
  [[nodiscard]] static init_result ignore() noexcept { return init_result{kind::ignore}; }
  /// It can't be started, for this reason: the process ends normally, and only whoever starts it hears of it.
  [[nodiscard]] static init_result fail(error why) {
    init_result r{kind::fail};
    r.why_ = std::move(why);
    return r;
  }
  /// It can't be started, and the process ends with `reason`: whoever is linked to it hears of that, too.
  [[nodiscard]] static init_result stop(exit_reason reason) {
    init_result r{kind::stop};
    r.reason_ = std::move(reason);
    return r;
  }
  /// The same, with more to say to whoever starts it.
  [[nodiscard]] static init_result stop(exit_reason reason, error why) {
    init_result r = stop(std::move(reason));
    r.why_ = std::move(why);
    return r;
  }

  [[nodiscard]] kind what() const noexcept { return kind_; }
  /// What whoever starts it is told; null: only how the process ended.
  [[nodiscard]] const error* why() const noexcept { return why_ ? &*why_ : nullptr; }
  /// How the process ends when it is not `ok`.
  [[nodiscard]] const exit_reason& reason() const noexcept { return reason_; }

 private:
  explicit init_result(kind k) noexcept : kind_{k} {}
  kind kind_;
  std::optional<error> why_;
  exit_reason reason_;
};

}  // namespace coppice
