#pragma once
/// Data that only some processes need: links other than the one to the parent, monitors, timers, deferred replies,
/// futures, the mark of the fast lane, traces and times. Allocated on first use. Thread safety: the owner of the
/// process only.
#include <coppice/base/flat_map.hpp>
#include <coppice/runtime/detail/kernel.hpp>

#include "handler_times.hpp"

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
  connection_number over = 0;   // the connection whose loss ends the link; 0: no connection, or within the node
};

using future_map = flat_map<std::uint64_t, std::shared_ptr<future_base>, number_hash>;

/// Of a process that has a bit of `is_observed`.
struct observer_notes {
  trace_context trace;         // that it belongs to; see trace_ids.hpp
  trace_context trace_before;  // restored if the message is put aside
  handler_times times;
};

struct side_block {
  // links and monitors: links.cpp
  flat_map<pid, link_state, pid_hash> links;
  flat_map<std::uint64_t, pid, number_hash> monitors;
  flat_map<watch, nothing, watch_hash> watchers;
  std::uint64_t refs = 0;
  std::uint32_t unlinks = 0;
  // timers: process_timers.cpp
  flat_map<std::uint64_t, nothing, number_hash> timers;  // started and neither received nor cancelled
  // deferred replies: lifecycle.cpp
  std::vector<std::weak_ptr<pending_reply>> replies;
  // futures: futures.cpp
  future_map futures;  // pending
  // the fast lane: fast_lane.cpp
  envelope* seen = nullptr;  // the queue was searched up to this envelope, which is marked with `signal::seen`
  signal seen_was{};         // the signal that this envelope had before it was marked
  // trace_ids.cpp, process_runner.cpp; null: nothing is known
  std::unique_ptr<observer_notes> notes;

  static void* operator new(std::size_t n) { return allocate(n); }
  static void operator delete(void* p, std::size_t n) noexcept { release(p, n); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return sizeof(*this) + links.bytes() + monitors.bytes() + watchers.bytes() + timers.bytes() + futures.bytes();
  }
};

/// Made if need be.
[[nodiscard]] inline observer_notes& notes_of(side_block& side) {
  if (side.notes == nullptr) side.notes = std::make_unique<observer_notes>();
  return *side.notes;
}

/// The side block of a process, made if need be. For the owner of the process.
[[nodiscard]] inline side_block& side_of(const process_table& table, slot& p) {
  if (p.side == nullptr) {
    p.side = new side_block;
    p.side->refs = std::uint64_t{table.index_of(p)} << 32U;  // no ref equals one of another live process of this node
  }
  return *p.side;
}
inline void free_side(slot& p) noexcept { delete std::exchange(p.side, nullptr); }

}  // namespace coppice::detail
