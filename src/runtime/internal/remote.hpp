#pragma once
/// Signals to and from other nodes, and signals that have no receiver.
#include <atomic>
#include <memory>

#include "remote_ties.hpp"

namespace coppice::detail {

class exits;

/// Thread safety: any thread.
class remote {
 public:
  explicit remote(kernel& k) noexcept : kernel_{k}, node_{k.node()} {}

  void set_transport(std::shared_ptr<transport> t) { transport_.store(std::move(t)); }

  /// Sends an envelope to a process of another node. Bounces it if the receiver is nobody or a process of this node
  /// that is not in the table.
  void send_elsewhere(pid to, envelope* e);
  /// Answers or drops a signal for a process that is not there, and leaves its envelope empty.
  void bounce(pid to, envelope& e, const exit_reason& why);
  /// A signal that has arrived from another node.
  void deliver(connection_number over, parcel p);
  /// Notifies every local process with a link, a monitor or an open call over that connection.
  void node_lost(node_id node, connection_number lost);

  /// The connection that a signal to `who` takes now; 0: there is none, or `who` is of this node.
  [[nodiscard]] connection_number connection_to(pid who);
  /// Adds a tie to the current connection. Does nothing for a process of this node.
  void tie_to(tie t);
  /// Adds a tie to the connection `t.over`.
  void tie_over(const tie& t) { ties_.add(t.remote.node(), t); }
  /// Removes a tie. Does nothing for a process of this node.
  void untie(const tie& t) {
    if (t.remote.node() != node_) ties_.remove(t.remote.node(), t);
  }

 private:
  kernel& kernel_;
  const node_id node_;
  std::atomic<std::shared_ptr<transport>> transport_;
  remote_ties ties_;
};

}  // namespace coppice::detail
