#pragma once
/// How signals reach processes of other nodes. The simulation and the cluster each bring one.
#include <memory>
#include <utility>

#include <coppice/runtime/detail/envelope.hpp>
#include <coppice/runtime/pid.hpp>

namespace coppice {

/// One signal on its way to a process of another node. Owns its payload: dropped on the way, a request answers its
/// caller.
class parcel {
 public:
  parcel(std::shared_ptr<detail::kernel> sender, pid to, detail::envelope* signal) noexcept
      : sender_{std::move(sender)}, to_{to}, signal_{signal} {}
  parcel(parcel&& other) noexcept
      : sender_{std::move(other.sender_)}, to_{other.to_}, signal_{std::exchange(other.signal_, nullptr)} {}
  parcel& operator=(parcel&& other) noexcept {
    std::swap(sender_, other.sender_);
    std::swap(to_, other.to_);
    std::swap(signal_, other.signal_);
    return *this;
  }
  ~parcel();

  [[nodiscard]] pid to() const noexcept { return to_; }
  [[nodiscard]] std::string_view type() const noexcept { return signal_->type->name; }
  [[nodiscard]] detail::envelope* release() noexcept { return std::exchange(signal_, nullptr); }

 private:
  std::shared_ptr<detail::kernel> sender_;
  pid to_;
  detail::envelope* signal_;
};

/// What a transport promises: signals from one process to another arrive in the order sent and at most once; when it
/// can promise that no longer, it tells the runtime `node_lost` and delivers nothing of that connection afterwards.
/// Thread safety: `send` is called from any thread and must not block.
class transport {
 public:
  virtual ~transport() = default;
  /// Whether a parcel to `node` has a chance. When it has none, links, monitors and calls are answered at once.
  [[nodiscard]] virtual bool reaches(node_id node) = 0;
  virtual void send(parcel p) = 0;
};

}  // namespace coppice
