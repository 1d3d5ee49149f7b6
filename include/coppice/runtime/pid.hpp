#pragma once
/// The address of a process.
#include <compare>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include <coppice/base/flat_map.hpp>
#include <coppice/base/id.hpp>

namespace coppice {

/// One start of one runtime; a restarted node has another one, so that old pids never reach new processes.
using node_id = id<struct node_tag>;

/// A value that may be copied, stored, compared and sent anywhere, for ever. It never dangles: once its process has
/// ended, messages to it become dead letters and links, monitors and calls are answered with `noproc`.
/// The default value is nobody.
class pid {
 public:
  constexpr pid() noexcept = default;
  /// For codecs and tests; everybody else gets pids from spawning.
  [[nodiscard]] static constexpr pid from_parts(node_id node, std::uint32_t index, std::uint32_t serial) noexcept {
    return pid{node, index, serial};
  }
  [[nodiscard]] constexpr node_id node() const noexcept { return node_; }
  [[nodiscard]] constexpr std::uint32_t index() const noexcept { return index_; }
  [[nodiscard]] constexpr std::uint32_t serial() const noexcept { return serial_; }
  /// False for nobody.
  constexpr explicit operator bool() const noexcept { return index_ != 0; }
  friend constexpr auto operator<=>(const pid&, const pid&) noexcept = default;

 private:
  constexpr pid(node_id node, std::uint32_t index, std::uint32_t serial) noexcept
      : node_{node}, index_{index}, serial_{serial} {}
  node_id node_{};
  std::uint32_t index_ = 0;   // of its slot in the node's table; 0 is nobody's
  std::uint32_t serial_ = 0;  // grows with each process in the slot
};

/// `<node.index.serial>`, for example `<1.7.0>`.
[[nodiscard]] std::string to_string(pid who);
std::ostream& operator<<(std::ostream& out, pid who);

/// Identifies a monitor, for `demonitor` and in `down`.
using monitor_ref = id<struct monitor_tag>;

namespace detail {
struct pid_hash {
  static constexpr pid none = pid::from_parts({}, 0, 1);  // not `pid{}`, which a process may try to link to
  std::uint64_t operator()(pid p) const noexcept {
    const std::uint64_t place = std::uint64_t{p.index()} << 32U | p.serial();
    return mix(place ^ (p.node().value() << 16U));
  }
};
}  // namespace detail

}  // namespace coppice

template <>
struct std::hash<coppice::pid> {
  std::size_t operator()(coppice::pid p) const noexcept { return coppice::detail::pid_hash{}(p); }
};
