#pragma once
/// Links and monitors.
///
/// Each side has an entry for a link, except that the link to the parent is a flag of the slot. An unlink takes effect
/// at once on the side that unlinks. Its entry stays, with the number of the unlink, until the other side has
/// confirmed: an exit that still arrives over the old link is dropped, and the confirmation does not remove a link that
/// was made anew meanwhile.
#include "link_signals.hpp"
#include "side_block.hpp"

namespace coppice::detail {

class remote;
struct tie;

/// Thread safety: each function is for the owner of the slot it is given.
class links {
 public:
  links(kernel& k, remote& r) noexcept;

  // -- by the process itself
  /// Throws `no_such_process` when `other` is known to have ended and `me` does not trap exits.
  void link(slot& me, pid other);
  void unlink(slot& me, pid other);
  [[nodiscard]] monitor_ref monitor(slot& me, pid other);
  [[nodiscard]] monitor_ref monitor_unborn(slot& me);
  bool demonitor(slot& me, monitor_ref ref);
  /// The parent's half of the link and the monitor that a spawn has made.
  void adopt(slot& me, pid mine, pid child, bool linked, monitor_ref watched_as);
  /// The child's half of the monitor.
  void add_watcher(slot& child, pid watcher, monitor_ref ref) {
    side_of(table_, child).watchers.insert({watcher, ref}, {});
  }

  // -- signals
  /// Whether the signal sets, removes or confirms a link or monitor. Such a signal is not delivered to the body.
  [[nodiscard]] static bool is_link_signal(signal s) noexcept {
    switch (s) {
      case signal::link:
      case signal::unlink:
      case signal::unlink_ack:
      case signal::monitor:
      case signal::demonitor: return true;
      default: return false;
    }
  }
  /// Handles a link signal that has reached the head of the queue.
  void apply(slot& p, const envelope& e);
  /// Handles a link signal ahead of its turn. Its envelope stays in the queue, empty.
  void apply_ahead(slot& p, envelope& e);
  /// Removes the monitor of the `down` in `e`. False: it was removed before, so the `down` must not be received.
  [[nodiscard]] bool take_monitor(slot& p, const envelope& e);

  // -- what is known of a link
  [[nodiscard]] const link_state* find(const slot& p, pid other) const noexcept;
  /// The link that ends because `l` reports the loss of its connection. Null: there is none, or the link was made anew
  /// over another connection.
  [[nodiscard]] const link_state* find_lost(const slot& p, const link_signal& l) const noexcept;
  [[nodiscard]] bool holds(const slot& p, pid other) const noexcept;
  /// Whether `me` is certain to be notified of the end of `child`.
  [[nodiscard]] bool end_will_be_known(const slot& me, pid child) const noexcept;
  /// Removes the link of `p` to `other`, or the entry that an unlink has left; returns the entry.
  [[nodiscard]] std::optional<link_state> remove(slot& p, pid other);

  /// Called when the process has ended: notifies the processes linked to it and those that monitor it, and removes the
  /// monitors that it has set.
  void notify_end(const side_block& side, pid me, const exit_reason& why, bool reported);

 private:
  template <signal s, class Content>
  void send_small(pid to, const Content& content);
  void receive(slot& p, const link_signal& l);
  void receive(slot& p, const unlink_signal& u);
  void receive_ack(slot& p, const unlink_signal& u);
  void receive(slot& p, const monitor_signal& m);
  void receive_removal(slot& p, const monitor_signal& m);
  void remove_watch(pid watcher, pid target, monitor_ref ref);
  [[nodiscard]] bool elsewhere(pid who) const noexcept { return who.node() != table_.node(); }

  kernel& kernel_;
  process_table& table_;
  remote& remote_;
  fault_plan* faults_;
};

}  // namespace coppice::detail
