#pragma once
/// The simulated network: packets, which can be late, lost, duplicated and reordered, and connections on top of them,
/// which deliver in order and at most once, as a transport must, or break.
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <coppice/runtime/runtime.hpp>

namespace coppice::sim {

/// How packets travel. A lost packet is sent again after `retry_after`, later after up to eight times as long: loss
/// delays signals, but does not break a connection.
struct network_quality {
  std::chrono::nanoseconds delay_min = std::chrono::microseconds{200};
  std::chrono::nanoseconds delay_max = std::chrono::milliseconds{2};
  double loss = 0;         ///< share of packets lost
  double duplication = 0;  ///< share of packets that arrive twice
  double reordering = 0;   ///< share of packets held back by up to ten times `delay_max`
  std::chrono::nanoseconds retry_after = std::chrono::milliseconds{200};
  /// A peer that is down, paused, suspended or cut off, in one direction or both, counts as lost after this time, or up
  /// to half as long again.
  std::chrono::nanoseconds lost_after = std::chrono::seconds{5};
};

class world;

class network {
 public:
  explicit network(world& w) : world_{w} {}

  network_quality quality;

  /// A transport for the node `from`.
  [[nodiscard]] std::shared_ptr<transport> attach(node_id from);
  void cut(node_id from, node_id to);
  void heal(node_id from, node_id to);
  void heal_all();
  /// The node does not answer any more. Nodes that are connected to it consider it lost after `quality.lost_after`,
  /// unless it answers again by then.
  void silence(node_id node);
  /// The node has crashed. As `silence`; packets that it has not sent yet are dropped.
  void forget(node_id node);
  /// A machine has started again, as node `now`: what was cut off from the node `before` stays cut off.
  void renumber(node_id before, node_id now);
  /// Sends the packets that were waiting for a partition to heal or a node to resume.
  void send_waiting();

  /// When the next packet arrives, or the next check for a lost node is due.
  [[nodiscard]] std::optional<time_point> next() const;
  /// Handles what is due now. Packets to a paused or suspended node wait until it goes on.
  void advance(time_point now);
  [[nodiscard]] bool open(node_id from, node_id to) const { return !cut_.contains({from, to}); }
  void drop_all();

 private:
  friend class node_transport;
  struct packet {
    node_id from, to;
    connection_number generation;
    std::uint64_t number;  // 0: tells the receiver that the connection is over
    std::shared_ptr<parcel> content;
    unsigned tries = 0;  // how often it was lost; not 0: it is sent again
  };
  /// The node `by` checks later whether the node `of` is lost.
  struct suspicion {
    node_id by, of;
    connection_number generation;
  };
  /// One side's view of a connection.
  struct endpoint {
    bool up = false;
    connection_number generation = 0;
    std::uint64_t sent = 0;
    std::uint64_t expected = 1;
    std::map<std::uint64_t, std::shared_ptr<parcel>> early{};
  };

  [[nodiscard]] connection_number connect(node_id from, node_id to);
  [[nodiscard]] bool send(node_id from, connection_number over, parcel& p);
  void transmit(packet p);
  void arrive(packet p);
  void accept(endpoint& here, const packet& p);
  void suspect(node_id by, node_id of);
  void check(const suspicion& s);
  void tear_down(node_id by, node_id of);
  [[nodiscard]] bool hears(node_id by, node_id of);

  world& world_;
  std::set<std::pair<node_id, node_id>> cut_;
  std::map<std::pair<node_id, node_id>, endpoint> endpoints_;
  std::map<std::pair<node_id, node_id>, connection_number> generations_;
  std::multimap<time_point, packet> packets_;
  std::multimap<time_point, suspicion> suspicions_;
  std::vector<packet> waiting_;  // until the partition heals, or the node is resumed
};

}  // namespace coppice::sim
