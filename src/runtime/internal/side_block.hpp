#pragma once
/// What only some processes have: links beyond the parent's, monitors, a label, timers. Exists once it is used.
///
/// Only the owner of the process changes it, under the lock; observers read it under the lock, after checking that the
/// block still belongs to whom they asked about. Blocks are reused and never freed while the runtime lives.
#include <string>
#include <vector>

#include <coppice/base/flat_map.hpp>
#include <coppice/runtime/detail/kernel.hpp>

#include "spin_lock.hpp"

namespace coppice::detail {

struct number_hash {
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
  std::uint64_t operator()(const watch& w) const noexcept { return pid_hash{}(w.watcher) ^ mix(w.ref.value()); }
};

struct side_block {
  spin_lock lock;
  pid owner;
  flat_map<pid, std::uint64_t, pid_hash> links;  // the value: 0, or the number of an unlink not confirmed yet
  flat_map<std::uint64_t, pid, number_hash> monitors;
  flat_map<watch, nothing, watch_hash> watchers;
  flat_map<std::uint64_t, nothing, number_hash> timers;  // started and neither received nor cancelled
  std::vector<std::weak_ptr<pending_reply>> replies;
  std::string label;
  std::uint64_t refs = 0;
  std::uint64_t unlinks = 0;

  [[nodiscard]] std::size_t bytes() const noexcept {
    return sizeof(*this) + links.bytes() + monitors.bytes() + watchers.bytes() + timers.bytes() + label.capacity();
  }
  void clear() {
    owner = {};
    links.clear();
    monitors.clear();
    watchers.clear();
    timers.clear();
    replies.clear();
    label.clear();
  }
};

}  // namespace coppice::detail
