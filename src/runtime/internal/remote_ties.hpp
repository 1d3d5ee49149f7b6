#pragma once
/// Which local processes must be notified when a node is lost: those with links, monitors or open calls to processes
/// there.
#include <map>
#include <mutex>
#include <vector>

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/detail/kernel.hpp>

namespace coppice::detail {

struct tie {
  enum class kind : std::uint8_t { link, monitor, watched, call };
  pid local;
  pid remote;
  std::uint64_t number = 0;  // of the monitor or the call
  kind what = kind::link;
  connection_number over = 0;                                  // the connection it is lost with
  void (*fail)(kernel&, pid, std::uint64_t, error) = nullptr;  // of a call: answers it with an error
  friend auto operator<=>(const tie& a, const tie& b) noexcept {
    if (const auto c = a.local <=> b.local; c != 0) return c;
    if (const auto c = a.remote <=> b.remote; c != 0) return c;
    if (const auto c = a.what <=> b.what; c != 0) return c;
    if (const auto c = a.number <=> b.number; c != 0) return c;
    return a.over <=> b.over;
  }
  [[nodiscard]] bool same_but_connection(const tie& o) const noexcept {
    return local == o.local && remote == o.remote && what == o.what && number == o.number;
  }
};

/// Thread safety: any thread.
class remote_ties {
 public:
  void add(node_id node, tie t) {
    const std::scoped_lock lock{mutex_};
    ++by_node_[node][t];
  }
  /// If `t` has no connection, removes an equal tie over any connection.
  void remove(node_id node, const tie& t) {
    const std::scoped_lock lock{mutex_};
    const auto found = by_node_.find(node);
    if (found == by_node_.end()) return;
    const auto tied = found->second.lower_bound(t);
    if (tied == found->second.end() || !tied->first.same_but_connection(t)) return;
    if (t.over != 0 && tied->first.over != t.over) return;
    ensure(tied->second > 0, "a tie to another node was removed more often than added");
    if (--tied->second == 0) found->second.erase(tied);
    if (found->second.empty()) by_node_.erase(found);
  }
  /// Removes and returns all ties over a lost connection, in a fixed order.
  [[nodiscard]] std::vector<tie> take(node_id node, connection_number lost) {
    const std::scoped_lock lock{mutex_};
    std::vector<tie> all;
    const auto found = by_node_.find(node);
    if (found == by_node_.end()) return all;
    std::erase_if(found->second, [&](const auto& entry) {
      if (entry.first.over != lost) return false;
      all.push_back(entry.first);
      return true;
    });
    if (found->second.empty()) by_node_.erase(found);
    return all;
  }

 private:
  std::mutex mutex_;
  // How often each tie was added: a link may be made anew while the end of the previous one is still in flight.
  std::map<node_id, std::map<tie, int>> by_node_;
};

}  // namespace coppice::detail
