#include <algorithm>

#include <coppice/behaviour/job.hpp>
#include <coppice/supervision/tree.hpp>

namespace coppice {

namespace {

bool has_children(const child_info& c) { return c.type != child_type::worker && c.who; }

/// Asks one supervisor or actor, then all below it at the same time, each in a job of its own.
task<tree_node> look_below(self& me, child_info about, tree_options options) {
  tree_node node{.child = std::move(about)};
  const auto answer = co_await call<calls::which_children>(node.child.who).within(options.patience);
  if (!answer) {
    node.silent = true;
    co_return node;
  }
  for (const child_info& c : *answer) node.children.push_back({.child = c});
  if (std::ranges::count_if(*answer, has_children) == 1) {  // a job for one supervisor would gain nothing
    tree_node& only = *std::ranges::find_if(node.children, [](const tree_node& n) { return has_children(n.child); });
    tree_node seen = co_await look_below(me, only.child, options);
    only = std::move(seen);
    co_return node;
  }
  std::vector<std::pair<std::size_t, job<tree_node>>> asked;
  for (std::size_t i = 0; i < node.children.size(); ++i)
    if (has_children(node.children[i].child))
      asked.emplace_back(i, async_job(me, look_below, node.children[i].child, options));
  for (auto& [place, looking] : asked) {
    result<tree_node> seen = co_await looking.await(forever);
    if (seen)
      node.children[place] = std::move(*seen);
    else
      node.children[place].silent = true;
  }
  co_return node;
}

task<result<tree_node>> look_from_outside(self& me, pid root, tree_options options) {
  tree_node tree = co_await look_at_tree(me, root, options);
  co_return tree;
}

struct line {
  std::string name;  // with the lines that connect it to its parent
  std::string rest;
};

std::string facts_of(const tree_node& n, const tree_options& options) {
  const child_info& c = n.child;
  if (n.ended) return to_string(c.who) + " has ended";
  std::string text{to_string(c.type)};
  text.resize(std::max<std::size_t>(text.size(), 10), ' ');
  switch (c.state) {
    case child_state::running: text += "  " + to_string(c.who); break;
    case child_state::undefined: text += "  down"; break;
    case child_state::restarting:
      text += "  restarting" + (c.waits.count() > 0 ? " in " + to_string(c.waits) : std::string{});
      break;
  }
  if (c.uptime.count() > 0) text += "  up " + to_string(c.uptime);
  if (c.restarts > 0) text += "  restarts " + std::to_string(c.restarts);
  if (c.last_reason) text += "  last: " + c.last_reason->to_string();
  if (options.descriptions && c.start) text += "  " + to_string(describe(c));
  if (n.silent) text += "  (no answer)";
  return text;
}

/// The number of columns on a screen: the number of UTF-8 characters, without continuation bytes.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

void add_lines(const tree_node& n, const std::string& before, const std::string& below, const tree_options& options,
               std::vector<line>& into) {
  into.push_back({before + n.child.id, facts_of(n, options)});
  const std::size_t drawn = std::min(n.children.size(), options.most_children);
  for (std::size_t i = 0; i < drawn; ++i) {
    const bool last = i + 1 == n.children.size();
    add_lines(n.children[i], below + (last ? "└─ " : "├─ "), below + (last ? "   " : "│  "), options, into);
  }
  if (drawn < n.children.size())
    into.push_back({below + "└─ and " + std::to_string(n.children.size() - drawn) + " more", ""});
}

}  // namespace

task<tree_node> look_at_tree(self& me, pid root, tree_options options) {
  tree_node tree{.child = {.id = "root", .who = root, .state = child_state::running, .type = child_type::supervisor}};
  if (me.host().has_fast_lane(root)) tree.child.type = child_type::actor;
  if (const auto info = me.host().info(root)) {
    if (!info->name.empty()) tree.child.id = info->name;
  } else {
    tree.child.state = child_state::undefined;
    tree.ended = true;
    co_return tree;
  }
  tree_node seen = co_await look_below(me, std::move(tree.child), options);
  co_return seen;
}

tree_node look_at_tree(runtime& rt, pid root, tree_options options) {
  return std::move(*rt.await(look_from_outside, root, options));
}

std::string draw(const tree_node& tree, tree_options options) {
  std::vector<line> lines;
  add_lines(tree, "", "", options, lines);
  std::size_t widest = 0;
  for (const line& l : lines)
    if (!l.rest.empty()) widest = std::max(widest, width(l.name));
  std::string text;
  for (const line& l : lines) {
    text += l.name;
    if (!l.rest.empty()) text += std::string(widest - width(l.name) + 2, ' ') + l.rest;
    text += '\n';
  }
  return text;
}

}  // namespace coppice
