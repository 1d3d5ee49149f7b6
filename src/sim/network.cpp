#include <coppice/sim/network.hpp>
#include <coppice/sim/world.hpp>

namespace coppice::sim {

class node_transport final : public transport {
 public:
  node_transport(network& net, node_id from) : net_{net}, from_{from} {}
  connection_number connect(node_id to) override { return net_.connect(from_, to); }
  bool send(connection_number over, parcel& p) override { return net_.send(from_, over, p); }

 private:
  network& net_;
  node_id from_;
};

std::shared_ptr<transport> network::attach(node_id from) { return std::make_shared<node_transport>(*this, from); }

// ---- sending

connection_number network::connect(node_id from, node_id to) {
  endpoint& mine = endpoints_[{from, to}];
  if (mine.up) return mine.generation;
  const node* peer = world_.find(to);
  if (peer == nullptr || !peer->up() || !open(from, to) || !open(to, from)) return 0;
  // Join the connection that the other side has just made, or make a new one.
  const endpoint& theirs = endpoints_[{to, from}];
  const bool join = theirs.up && theirs.generation > mine.generation;
  mine = {.up = true, .generation = join ? theirs.generation : ++generations_[std::minmax(from, to)]};
  return mine.generation;
}

bool network::send(node_id from, connection_number over, parcel& p) {
  const node_id to = p.to().node();
  endpoint& mine = endpoints_[{from, to}];
  if (!mine.up || mine.generation != over) return false;
  transmit({from, to, over, ++mine.sent, std::make_shared<parcel>(std::move(p))});
  return true;
}

void network::transmit(packet p) {
  dice& d = world_.chance();
  const auto delay = [&] {
    auto one = d.between(quality.delay_min, quality.delay_max);
    if (d.chance(quality.reordering)) one += d.between({}, quality.delay_max * 10);
    return one;
  };
  if (p.number == 0 && !open(p.from, p.to)) {
    waiting_.push_back(std::move(p));
    return;
  }
  if (!open(p.from, p.to) || d.chance(quality.loss)) {
    const endpoint& sender = endpoints_[{p.from, p.to}];
    if (p.number != 0 && (!sender.up || sender.generation != p.generation)) return;  // the sender has given it up
    ++p.tries;
    const auto again = std::min(quality.retry_after * std::min(p.tries, 8U), quality.lost_after);
    packets_.emplace(world_.now() + again + delay(), std::move(p));
    return;
  }
  p.tries = 0;
  if (d.chance(quality.duplication)) packets_.emplace(world_.now() + delay(), p);
  packets_.emplace(world_.now() + delay(), std::move(p));
}

// ---- arriving

void network::arrive(packet p) {
  if (p.tries != 0) return transmit(std::move(p));  // it was lost: send it again
  node* receiver = world_.find(p.to);
  if (receiver == nullptr || !receiver->up()) return;
  if (receiver->halted()) {
    waiting_.push_back(std::move(p));
    return;
  }
  if (!open(p.from, p.to)) {
    p.tries = 1;
    if (p.number == 0)
      waiting_.push_back(std::move(p));
    else
      packets_.emplace(world_.now() + quality.retry_after, std::move(p));
    return;
  }
  endpoint& here = endpoints_[{p.to, p.from}];
  if (p.number == 0) {
    if (p.generation > here.generation) {  // it has overtaken the packets of that connection
      if (here.up) tear_down(p.to, p.from);
      here = {.generation = p.generation};
    } else if (here.up && here.generation == p.generation) {
      tear_down(p.to, p.from);
    }
    return;
  }
  if (p.generation < here.generation || (!here.up && p.generation == here.generation)) {
    transmit({p.to, p.from, p.generation, 0, nullptr});  // the connection is over: tell the sender
    return;
  }
  if (p.generation > here.generation) {
    if (here.up) tear_down(p.to, p.from);
    here = {.up = true, .generation = p.generation};
    if (!hears(p.to, p.from)) suspect(p.to, p.from);  // the sender has become unreachable since it sent this packet
  }
  accept(here, p);
}

void network::accept(endpoint& here, const packet& p) {
  if (p.number < here.expected) return;  // a duplicate
  here.early.emplace(p.number, p.content);
  while (!here.early.empty() && here.early.begin()->first == here.expected) {
    const auto content = std::move(here.early.begin()->second);
    here.early.erase(here.early.begin());
    ++here.expected;
    world_.add_to_hash("arrive", p.from.value(), p.to.value(), p.number);
    if (world_.traced())
      world_.tell(p.to, "packet " + std::to_string(p.number) + " from " + world_.name_of(p.from) + " for " +
                            to_string(content->to()) + ": " + std::string{content->type()});
    world_.find(p.to)->rt().deliver(p.generation, std::move(*content));
  }
}

// ---- faults

void network::cut(node_id from, node_id to) {
  world_.add_to_hash("cut", from.value(), to.value());
  if (world_.traced()) world_.tell(from, "nothing passes to " + world_.name_of(to));
  cut_.insert({from, to});
  suspect(from, to);
  suspect(to, from);
}
void network::heal(node_id from, node_id to) {
  world_.add_to_hash("heal", from.value(), to.value());
  if (world_.traced()) world_.tell(from, "packets pass to " + world_.name_of(to) + " again");
  cut_.erase({from, to});
  send_waiting();
}
void network::heal_all() {
  world_.note("all partitions end");
  cut_.clear();
  send_waiting();
}

void network::send_waiting() {
  for (packet& p : std::exchange(waiting_, {})) {
    p.tries = 0;
    transmit(std::move(p));
  }
}

void network::silence(node_id node) {
  for (const auto& [pair, e] : endpoints_)
    if (e.up && pair.second == node) suspect(pair.first, pair.second);
}

void network::renumber(node_id before, node_id now) {
  if (!before) return;
  std::vector<std::pair<node_id, node_id>> same;
  for (const auto& [from, to] : cut_)
    if (from == before || to == before) same.emplace_back(from == before ? now : from, to == before ? now : to);
  cut_.insert(same.begin(), same.end());
}

void network::forget(node_id node) {
  silence(node);
  std::erase_if(packets_, [&](const auto& entry) { return entry.second.from == node && entry.second.tries != 0; });
  std::erase_if(waiting_, [&](const packet& p) { return p.from == node; });
  std::erase_if(endpoints_, [&](const auto& entry) { return entry.first.first == node; });
}

void network::suspect(node_id by, node_id of) {
  const auto found = endpoints_.find({by, of});
  if (found == endpoints_.end() || !found->second.up) return;
  const auto wait = world_.chance().between(quality.lost_after, quality.lost_after * 3 / 2);
  suspicions_.emplace(world_.now() + wait, suspicion{by, of, found->second.generation});
}

bool network::hears(node_id by, node_id of) {
  const node* peer = world_.find(of);
  return peer != nullptr && peer->up() && !peer->halted() && open(by, of) && open(of, by);
}

void network::check(const suspicion& s) {
  const auto found = endpoints_.find({s.by, s.of});
  if (found == endpoints_.end() || !found->second.up || found->second.generation != s.generation) return;
  if (hears(s.by, s.of)) return;
  tear_down(s.by, s.of);
}

void network::tear_down(node_id by, node_id of) {
  endpoint& e = endpoints_[{by, of}];
  e.up = false;
  e.early.clear();
  world_.add_to_hash("lost", by.value(), of.value(), e.generation);
  if (world_.traced()) world_.tell(by, "has lost its connection to " + world_.name_of(of));
  // The other end refuses packets that are in flight. Packets that were to be sent again are dropped.
  std::erase_if(packets_, [&](const auto& entry) {
    const packet& p = entry.second;
    return p.number != 0 && p.from == by && p.to == of && p.generation == e.generation && p.tries != 0;
  });
  node* n = world_.find(by);
  if (n == nullptr || !n->up()) return;
  transmit({by, of, e.generation, 0, nullptr});
  n->rt().node_lost(of, e.generation);
}

// ---- time

std::optional<time_point> network::next() const {
  std::optional<time_point> first;
  if (!packets_.empty()) first = packets_.begin()->first;
  if (!suspicions_.empty() && (!first || suspicions_.begin()->first < *first)) first = suspicions_.begin()->first;
  return first;
}

void network::advance(time_point now) {
  while (!packets_.empty() && packets_.begin()->first <= now) {
    packet p = std::move(packets_.begin()->second);
    packets_.erase(packets_.begin());
    arrive(std::move(p));
  }
  while (!suspicions_.empty() && suspicions_.begin()->first <= now) {
    const suspicion s = suspicions_.begin()->second;
    suspicions_.erase(suspicions_.begin());
    check(s);
  }
}

void network::drop_all() {
  packets_.clear();
  waiting_.clear();
  endpoints_.clear();
  suspicions_.clear();
}

}  // namespace coppice::sim
