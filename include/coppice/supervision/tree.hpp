#pragma once
/// A running supervision tree as text:
///
///     root                  supervisor  <1.2.0>
///     ├─ database           worker      <1.3.0>  up 5.2s
///     ├─ cache              worker      <1.9.0>  up 0.8s  restarts 2  last: error: std::bad_alloc
///     └─ web                supervisor  <1.5.0>  up 5.2s
///        └─ listener        worker      restarting in 1.6s  restarts 4  last: killed
#include <coppice/supervision/supervisor.hpp>

namespace coppice {

struct tree_node {
  child_info child;
  std::vector<tree_node> children{};
  /// The supervisor or actor did not answer: it is busy, or has just ended.
  bool silent = false;
  /// There is no such process: the root has ended, so nothing else is known about it.
  bool ended = false;
};

struct tree_options {
  /// How long to wait for the answer of each supervisor or actor. All of one level are asked at the same time.
  std::chrono::nanoseconds patience = std::chrono::seconds{1};
  /// How many children of one supervisor are drawn; the others are counted.
  std::size_t most_children = 50;
  /// Whether to draw what each child is as well; see `describe`. Default: no.
  bool descriptions = false;
};

/// Asks `root` and all supervisors and actors below it for their children. The answers are not a snapshot of one
/// moment.
[[nodiscard]] task<tree_node> look_at_tree(self& me, pid root, tree_options options = {});
/// From a plain thread.
[[nodiscard]] tree_node look_at_tree(runtime& rt, pid root, tree_options options = {});
/// The tree as text, as above.
[[nodiscard]] std::string draw(const tree_node& tree, tree_options options = {});

}  // namespace coppice
