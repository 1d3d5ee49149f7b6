#pragma once
/// What only some processes have: links beyond the parent's, monitors, timers. Exists once it is used, and is its
/// owner's.
#include <coppice/base/flat_map.hpp>
#include <coppice/runtime/detail/kernel.hpp>

#include "spin_lock.hpp"

namespace coppice::detail {

struct number_hash {
  static constexpr std::uint64_t none = 0;
  std::uint64_t operator()(std::uint64_t n) const noexcept { return mix(n); }
};
struct nothing {};

/// A monitor as its target knows it.
struct watch {
  pid watcher;
  monitor_ref ref;
  friend bool operator==(const watch&, const watch&) = default;
};
struct watch_hash {
  static constexpr watch none{pid_hash::none, {}};
  std::uint64_t operator()(const watch& w) const noexcept { return mix(w.ref.value() ^ pid_hash{}(w.watcher)); }
};

struct link_state {
  std::uint32_t unlinking = 0;  // the number of an unlink not confirmed yet; 0: the link holds
  connection_number over = 0;   // what it is lost with; 0: within the node
};

struct side_block {
  flat_map<pid, link_state, pid_hash> links;
  flat_map<std::uint64_t, pid, number_hash> monitors;
  flat_map<watch, nothing, watch_hash> watchers;
  flat_map<std::uint64_t, nothing, number_hash> timers;  // started and neither received nor cancelled
  std::vector<std::weak_ptr<pending_reply>> replies;
  std::uint64_t refs = 0;
  envelope* seen = nullptr;  // in the queue, with that signal; ...
  signal seen_was{};         // ... what it was before
  std::uint32_t unlinks = 0;

  static void* operator new(std::size_t n) { return allocate(n); }
  static void operator delete(void* p, std::size_t n) noexcept { release(p, n); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return sizeof(*this) + links.bytes() + monitors.bytes() + watchers.bytes() + timers.bytes();
  }
};

}  // namespace coppice::detail
