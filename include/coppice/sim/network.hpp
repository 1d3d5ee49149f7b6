#pragma once
/// The simulated network: packets that are slow, lost, doubled and overtake each other, and connections on top of them
/// that keep the transport's promise (order, at most once) or break.
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <coppice/runtime/runtime.hpp>

namespace coppice::sim {

/// How packets travel. Lost ones are sent again, so that loss costs time and, when it lasts, the connection.
struct network_quality {
  std::chrono::nanoseconds delay_min = std::chrono::microseconds{200};
  std::chrono::nanoseconds delay_max = std::chrono::milliseconds{2};
  double loss = 0;         ///< share of packets lost
  double duplication = 0;  ///< share of packets that come twice
  double reordering = 0;   ///< share of packets held back by up to ten times `delay_max`
  std::chrono::nanoseconds retry_after = std::chrono::milliseconds{200};
  /// A peer from which nothing has arrived for this time (up to half as long again) counts as lost.
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
  /// The node is gone for good, or for a while: whoever is connected to it will notice in time.
  void silence(node_id node);
  void forget(node_id node);
  /// The machine of a node has a new one: what was cut off stays cut off.
  void renumber(node_id before, node_id now);
  /// What could not get through may be tried again.
  void send_waiting();

  /// When the next packet or suspicion is due.
  [[nodiscard]] std::optional<time_point> next() const;
  /// Handles what is due now, except for nodes that are paused.
  void advance(time_point now);
  [[nodiscard]] bool open(node_id from, node_id to) const { return !cut_.contains({from, to}); }
  void drop_all();

 private:
  friend class node_transport;
  struct packet {
    node_id from, to;
    connection_number generation;
    std::uint64_t number;  // 0: a refusal
    std::shared_ptr<parcel> content;
    unsigned tries = 0;
  };
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
