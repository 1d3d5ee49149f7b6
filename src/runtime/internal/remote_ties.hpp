#pragma once
/// Which local processes must hear when a node is lost: those with links, monitors or open calls to processes there.
#include <map>
#include <mutex>
#include <vector>

#include <coppice/runtime/detail/kernel.hpp>

namespace coppice::detail {

struct tie {
  enum class kind : std::uint8_t { link, monitor, watched, call };
  pid local;
  pid remote;
  std::uint64_t number = 0;  // of the monitor or the call
  kind what = kind::link;
  void (*fail)(kernel&, pid, std::uint64_t, error) = nullptr;  // answers the call
  friend auto operator<=>(const tie& a, const tie& b) noexcept {
    if (const auto c = a.local <=> b.local; c != 0) return c;
    if (const auto c = a.remote <=> b.remote; c != 0) return c;
    if (const auto c = a.what <=> b.what; c != 0) return c;
    return a.number <=> b.number;
  }
};

class remote_ties {
 public:
  void add(node_id node, tie t) {
    const std::scoped_lock lock{mutex_};
    ++by_node_[node][t];
  }
  void remove(node_id node, const tie& t) {
    const std::scoped_lock lock{mutex_};
    const auto found = by_node_.find(node);
    if (found == by_node_.end()) return;
    const auto tied = found->second.find(t);
    if (tied == found->second.end()) return;
    if (--tied->second == 0) found->second.erase(tied);
    if (found->second.empty()) by_node_.erase(found);
  }
  /// All of them, in a fixed order; the node has none afterwards.
  [[nodiscard]] std::vector<tie> take(node_id node) {
    const std::scoped_lock lock{mutex_};
    std::vector<tie> all;
    const auto found = by_node_.find(node);
    if (found == by_node_.end()) return all;
    for (const auto& [t, times] : found->second) all.push_back(t);
    by_node_.erase(found);
    return all;
  }

 private:
  std::mutex mutex_;
  // How often each is tied: a link may be made anew while the end of the last one is still on its way.
  std::map<node_id, std::map<tie, int>> by_node_;
};

}  // namespace coppice::detail
