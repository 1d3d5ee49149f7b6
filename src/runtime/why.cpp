// Why a process makes no progress.
#include <algorithm>
#include <map>

#include <coppice/base/duration_text.hpp>

#include "internal/observer.hpp"

namespace coppice::detail {

namespace {

std::string called(const process_info& p) {
  const std::string& by = p.name.empty() ? p.label : p.name;
  return by.empty() ? to_string(p.id) : to_string(p.id) + " (" + by + ")";
}

std::string lasting(const process_info& p) { return to_string(std::chrono::nanoseconds{p.lasting}); }

std::string mail_of(const process_info& p) {
  if (p.mailbox == 0) return {};
  std::string text = "; " + std::to_string(p.mailbox) + (p.mailbox == 1 ? " message waits" : " messages wait");
  constexpr std::size_t most = 3;
  for (std::size_t i = 0; i < std::min(p.mail.size(), most); ++i)
    text.append(i == 0 ? ": " : ", ").append(std::to_string(p.mail[i].count)).append(" ").append(p.mail[i].type);
  if (p.mail.size() > most) text += " and others";
  return text;
}

std::string waiting(const process_info& p) {
  std::string text = " has waited " + lasting(p) + " for " + to_string(p.waits);
  if (p.waits.left) text += ", at most " + to_string(std::chrono::nanoseconds{*p.waits.left}) + " more";
  if (!p.handling.empty() && p.waits.kind != wait_kind::message) text.append(", handling ").append(p.handling);
  return text;
}

std::string state_of(const process_info& p) {
  switch (p.state) {
    case process_state::waiting: return waiting(p) + mail_of(p);
    case process_state::runnable: return " has mail and waits for a worker" + mail_of(p);
    case process_state::running:
      return (p.handling.empty() ? std::string{" has run its code"} : " has handled " + std::string{p.handling}) +
             " for " + lasting(p) + mail_of(p);
    case process_state::frozen: return " is frozen" + mail_of(p);
  }
  return {};
}

}  // namespace

/// Whether each of them still waits for the same answer of the next. They were looked at one after the other, so what
/// looks like a circle may never have been one.
bool observer::is_circle(const std::vector<process_info>& members) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::optional<process_info> now = info(members[i].id);
    if (!now || now->waits.kind != wait_kind::answer || now->waits.call != members[i].waits.call ||
        now->waits.whom != members[(i + 1) % members.size()].id)
      return false;
  }
  return true;
}

std::string observer::why(pid who) {
  std::string text;
  std::vector<process_info> passed;
  for (pid next = who; next;) {
    if (const auto first = std::ranges::find(passed, next, &process_info::id); first != passed.end()) {
      passed.erase(passed.begin(), first);
      return is_circle(passed) ? text + "; so each of them waits for the next, and none can continue" : text;
    }
    if (!text.empty()) text += "; ";
    if (next.node() != table_.node()) return text + to_string(next) + " is a process of another node";
    const std::optional<process_info> seen = info(next);
    if (!seen) return text + to_string(next) + " is not alive";
    text += called(*seen) + state_of(*seen);
    passed.push_back(*seen);
    next = seen->state == process_state::waiting && seen->waits.kind == wait_kind::answer ? seen->waits.whom : pid{};
  }
  return text;
}

std::vector<std::vector<pid>> observer::call_cycles() {
  std::map<pid, pid> calls;
  std::map<pid, process_info> seen;
  for (process_info& p : snapshot()) {
    if (p.waits.kind != wait_kind::answer) continue;
    calls.emplace(p.id, p.waits.whom);
    seen.emplace(p.id, std::move(p));
  }
  std::vector<std::vector<pid>> cycles;
  std::map<pid, pid> begun_by;  // process -> the first process of the walk that reached it
  for (const auto& [first, to] : calls) {
    pid at = first;
    while (calls.contains(at) && begun_by.emplace(at, first).second) at = calls[at];
    if (!calls.contains(at) || begun_by[at] != first) continue;  // the chain of calls ends, or joins an earlier walk
    std::vector<pid> cycle;
    std::vector<process_info> members;
    const pid end = at;
    do {
      cycle.push_back(at);
      members.push_back(seen.at(at));
      at = calls[at];
    } while (at != end);
    if (!is_circle(members)) continue;
    std::ranges::rotate(cycle, std::ranges::min_element(cycle));
    cycles.push_back(std::move(cycle));
  }
  return cycles;
}

}  // namespace coppice::detail
