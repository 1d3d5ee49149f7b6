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

/// One connection with another node, from its beginning to its loss, as this side numbers it. Numbers grow; 0 is none.
using connection_number = std::uint32_t;

/// What a transport promises: over one connection, signals from one process to another arrive in the order sent and at
/// most once. When it can promise that no longer, both sides are told `node_lost`, once, and nothing is delivered over
/// that connection afterwards. What comes over the next connection comes after that. `connect` does not name a
/// connection whose loss was told.
/// Thread safety: called from any thread, and must not block.
class transport {
 public:
  virtual ~transport() = default;
  /// The connection that a signal to `node` takes now, made if need be. 0: there is none, and links, monitors and calls
  /// are answered at once.
  [[nodiscard]] virtual connection_number connect(node_id node) = 0;
  /// Takes the parcel. False, and the parcel untouched: that connection is over.
  [[nodiscard]] virtual bool send(connection_number over, parcel& p) = 0;
};

}  // namespace coppice
