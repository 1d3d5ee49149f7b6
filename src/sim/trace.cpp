#include <algorithm>
#include <set>

#include <coppice/runtime/detail/mailbox_policy.hpp>
#include <coppice/sim/trace.hpp>

#include "internal/node_tracer.hpp"

namespace coppice::sim {

// ---- events

std::string to_string(const trace_event& event) {
  const auto since_start = event.at.time_since_epoch().count();
  const std::string fraction = std::to_string(since_start % 1'000'000'000);
  std::string line =
      std::to_string(since_start / 1'000'000'000) + "." + std::string(9 - fraction.size(), '0') + fraction;
  const std::string who = event.process ? to_string(event.process) : "";
  bool about_one = false;
  for (const std::string& part : {event.node, event.called, who}) {
    if (part.empty()) continue;
    line += " " + part;
    about_one = true;
  }
  return line + (about_one ? ": " : " ") + event.what;
}

void trace::keep(std::size_t events) {
  most_ = events;
  while (kept_.size() > most_) kept_.pop_front();
}

void trace::add(trace_event event) {
  if (sink_) sink_(to_string(event));
  if (most_ == 0) return;
  if (kept_.size() >= most_) kept_.pop_front();
  kept_.push_back(std::move(event));
}

std::vector<trace_event> last_of(const std::deque<trace_event>& events, std::string_view who, std::size_t n) {
  std::set<pid> meant;
  for (const trace_event& e : events)
    if (e.process && (e.called == who || to_string(e.process) == who)) meant.insert(e.process);
  std::vector<trace_event> found;
  for (auto e = events.rbegin(); e != events.rend() && found.size() < n; ++e)
    if (e->node == who || meant.contains(e->process)) found.push_back(*e);
  std::ranges::reverse(found);
  return found;
}

// ---- the trace of a world

void world::note(std::string_view what, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  add_to_hash(what, a, b, c);
  if (!traced()) return;
  std::string text{what};
  if ((a | b | c) != 0) text += " " + std::to_string(a);
  if ((b | c) != 0) text += " " + std::to_string(b);
  if (c != 0) text += " " + std::to_string(c);
  trace_.add({.at = now_, .node = {}, .process = {}, .called = {}, .what = std::move(text)});
}

void world::tell(trace_event event) {
  event.at = now_;
  if (event.process) event.node = name_of(event.process.node());
  trace_.add(std::move(event));
}

void world::tell(node_id where, std::string what) {
  trace_.add({.at = now_, .node = name_of(where), .process = {}, .called = {}, .what = std::move(what)});
}

std::string world::name_of(node_id id) {
  const node* found = find(id);
  return found != nullptr ? found->name() : "node " + std::to_string(id.value());
}

void world::attach_tracers() {
  for (node& n : nodes_) n.attach_tracer();
}

void world::on_trace(std::function<void(std::string_view)> sink) {
  trace_.on_line(std::move(sink));
  attach_tracers();
}

void world::keep_trace(std::size_t events) {
  trace_.keep(events);
  attach_tracers();
}

std::vector<trace_event> world::last_events(std::size_t n) const {
  const std::deque<trace_event>& all = trace_.kept();
  return {all.end() - static_cast<std::ptrdiff_t>(std::min(n, all.size())), all.end()};
}

// ---- what processes do

namespace {

/// The type of a message is that of its content, also if it carries its sender.
std::string_view type_of(const detail::envelope& e) noexcept {
  return e.type->mail.content != nullptr ? e.type->mail.content->name : e.type->name;
}

std::string text_of_message(const detail::envelope& e) {
  return (e.type->is_request() ? "call " : "message ") + std::string{type_of(e)};
}

std::string text_of_exit(const detail::envelope& e) {
  const auto& x = static_cast<const detail::letter<exited>&>(e).body;
  return "exit signal" + (x.from ? " from " + to_string(x.from) : std::string{}) + ": " + x.reason.to_string();
}

std::string text_of_down(const detail::envelope& e) {
  const auto& x = static_cast<const detail::letter<down>&>(e).body;
  return "down of " + to_string(x.who) + ": " + x.reason.to_string();
}

std::string text_of_start(const detail::envelope& e) {
  const auto& first = static_cast<const detail::start_letter&>(e);
  return first.with.parent ? "start, spawned by " + to_string(first.with.parent) : "start";
}

std::string text_of(const detail::slot& p, const detail::envelope& e) {
  using detail::signal;
  switch (e.what()) {
    case signal::seen:
    case signal::message: return detail::kernel::is_message(p, e) ? text_of_message(e) : "";
    case signal::fast: return text_of_message(e) + ", before its mail";
    case signal::reply: return "reply";
    case signal::notice: return "notice " + std::string{type_of(e)};
    case signal::start: return text_of_start(e);
    case signal::exit: return text_of_exit(e);
    case signal::link: return "link";
    case signal::unlink: return "unlink";
    case signal::unlink_ack: return "unlink confirmed";
    case signal::link_lost: return "link lost with its connection";
    case signal::monitor: return "monitor";
    case signal::demonitor: return "demonitor";
    case signal::down: return text_of_down(e);
    case signal::timeout: return "timer";
    case signal::wait_over: return "check of a time limit";
    case signal::wake: return "wake-up";
    case signal::mail:
    case signal::vacant:
    case signal::done: break;
  }
  return "";  // an empty envelope: its signal was handled before
}

/// The message that a mail token stands for. Null: `e` is not a token, or its message was taken before.
const detail::envelope* message_of_token(detail::kernel& k, pid who, const detail::envelope& e) {
  if (e.type != &detail::plain<detail::mail_token>) return nullptr;
  const auto policy = k.policy_of(who);
  return policy != nullptr ? policy->next() : nullptr;
}

}  // namespace

node_tracer::node_tracer(world& w, detail::kernel& of) : world_{w}, kernel_{of} {
  of.events().set_tracer(*this);
  of.table().for_each_process([&](const detail::slot& p) { known_[of.pid_of(p)] = class_of(p); });
}

std::string node_tracer::class_of(const detail::slot& p) {
  if (p.process == nullptr) return {};
  if (p.process->type != &detail::coroutine::type_of) return std::string{p.process->type->name};
  if (!static_cast<const detail::coroutine&>(*p.process).serves()) return {};
  process_info seen;  // of a server whose handlers wait
  p.process->type->describe(*p.process, kernel_, seen);
  return seen.type;
}

std::string node_tracer::called(pid who) {
  const bool alive = kernel_.table().alive(who);
  std::string now = kernel_.name_of(who);
  if (now.empty()) now = kernel_.label_of(who);
  const auto found = known_.find(who);
  const bool is_known = found != known_.end() && !found->second.empty();
  // Before its first turn is over, a server whose handlers wait has no object.
  if (now.empty() && !is_known && alive) now = class_of(kernel_.slot_at(who.index()));
  if (now.empty()) return is_known ? found->second : "";
  if (alive) known_[who] = now;  // for the time after its end
  return now;
}

void node_tracer::forget_oldest() {
  constexpr std::size_t most_ended = 1000;
  if (ended_.size() <= most_ended) return;
  known_.erase(ended_.front());
  ended_.pop_front();
}

void node_tracer::tell(pid who, std::string what) {
  world_.tell({.at = {}, .node = {}, .process = who, .called = called(who), .what = std::move(what)});
}

void node_tracer::handles(const detail::slot& p, const detail::envelope& e) {
  if (e.serial() != p.serial()) return;  // it bounces: that is a dead letter, or an answer to its sender
  const pid who = kernel_.pid_of(p);
  if (e.what() == detail::signal::start) {
    const auto& first = static_cast<const detail::start_letter&>(e);
    known_[who] = first.with.has_label() ? first.with.called->label : std::string{e.type->name};
  }
  const detail::envelope* under_policy = message_of_token(kernel_, who, e);
  std::string what = under_policy != nullptr ? text_of_message(*under_policy) : text_of(p, e);
  if (!what.empty()) tell(who, std::move(what));
}

void node_tracer::saw(const process_ended& event) {
  if (!event.label.empty()) known_[event.who] = event.label;
  if (!event.name.empty()) known_[event.who] = event.name;
  tell(event.who, "ended: " + event.reason.to_string());
  ended_.push_back(event.who);
  forget_oldest();
}

void node_tracer::saw(const process_stalled& event) { tell(event.who, "reported as stuck in its code"); }

void node_tracer::saw(const dead_letter& event) { tell(event.to, "dead letter " + std::string{event.message}); }

}  // namespace coppice::sim
