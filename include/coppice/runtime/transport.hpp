#pragma once
/// How signals reach processes of other nodes. The simulation has the only implementation so far.
#include <memory>
#include <utility>

#include <coppice/runtime/detail/envelope.hpp>
#include <coppice/runtime/pid.hpp>
#include <coppice/runtime/trace_context.hpp>

namespace coppice {

/// One signal on its way to a process of another node. Owns its payload. A parcel that is destroyed on the way answers
/// nobody: the caller of a lost request gets its error when the loss of the connection is reported.
class parcel {
 public:
  parcel(std::shared_ptr<detail::kernel> sender, pid to, detail::envelope* signal) noexcept
      : sender_{std::move(sender)}, to_{to}, signal_{signal} {}
  parcel(parcel&& other) noexcept
      : sender_{std::move(other.sender_)},
        to_{other.to_},
        signal_{std::exchange(other.signal_, nullptr)},
        trace_{other.trace_} {}
  parcel& operator=(parcel&& other) noexcept {
    std::swap(sender_, other.sender_);
    std::swap(to_, other.to_);
    std::swap(signal_, other.signal_);
    std::swap(trace_, other.trace_);
    return *this;
  }
  ~parcel();

  [[nodiscard]] pid to() const noexcept { return to_; }
  /// The trace that the message belongs to; empty: none.
  [[nodiscard]] const trace_context& trace() const noexcept { return trace_; }
  void set_trace(const trace_context& as) noexcept { trace_ = as; }
  [[nodiscard]] std::string_view type() const noexcept { return signal_->type->name; }
  [[nodiscard]] detail::envelope* release() noexcept { return std::exchange(signal_, nullptr); }

 private:
  std::shared_ptr<detail::kernel> sender_;
  pid to_;
  detail::envelope* signal_;
  trace_context trace_;
};

/// One connection with another node, from its beginning to its loss, as this side numbers it. Numbers grow; 0 is none.
using connection_number = std::uint32_t;

/// What a transport promises: over one connection, signals from one process to another arrive in the order sent and at
/// most once. When it can't keep that promise any more, it calls `runtime::node_lost` on both sides, once, and delivers
/// nothing over that connection afterwards. On each side it delivers over the next connection only after that call.
/// `connect` never returns a connection whose loss was reported.
/// Thread safety: called from any thread, and must not block.
class transport {
 public:
  virtual ~transport() = default;
  /// The connection for signals to `node`, established if there is none. 0: the node can't be reached, and links,
  /// monitors and calls fail at once with `noconnection`.
  [[nodiscard]] virtual connection_number connect(node_id node) = 0;
  /// Takes the parcel. False: that connection is lost, and the parcel is untouched.
  [[nodiscard]] virtual bool send(connection_number over, parcel& p) = 0;
};

}  // namespace coppice
