// Signals that can't be delivered here: to other nodes, or to nobody.
#include <coppice/runtime/detail/event_stream.hpp>
#include <coppice/runtime/detail/kernel.hpp>

#include "internal/link_signals.hpp"
#include "internal/remote_ties.hpp"

namespace coppice {

parcel::~parcel() {
  if (signal_ != nullptr) detail::discard(*sender_, signal_, {detail::loss::kind::vanished, nullptr});
}

namespace detail {

void kernel::set_transport(std::shared_ptr<transport> t) { transport_ = std::move(t); }

void kernel::send_elsewhere(pid to, envelope* e) {
  if (crashed_) {
    discard(*this, e);
    return;
  }
  if (!to || to.node() == node_) {  // nobody, or an index this table never had, or one that is another's now
    bounce(to, *e, exit_reason::noproc());
    release(e);
    return;
  }
  // A link goes over the connection it is tied to, or not at all.
  const connection_number over =
      e->what() == signal::link ? static_cast<letter<link_signal>*>(e)->body.over : connection_to(to);
  if (over != 0) {
    parcel out{shared_from_this(), to, e};
    if (transport_->send(over, out)) return;
    e = out.release();
  }
  bounce(to, *e, exit_reason::noconnection());
  release(e);
}

/// Answers or drops a signal for a process that is not there, and leaves its envelope empty.
void kernel::bounce(pid to, envelope& e, const exit_reason& why) {
  switch (e.what()) {
    case signal::message: note_dead_letter(to, e); break;
    case signal::link: {
      const link_signal l = static_cast<letter<link_signal>&>(e).body;
      untie(l.from, {.local = to, .remote = l.from, .what = tie::kind::link, .over = l.over});
      if (why.what() == exit_reason::kind::noconnection)
        send_link_lost(l.from, to, l.over);
      else
        send_exit(l.from, {to, why, true});
      break;
    }
    case signal::unlink: {
      const auto u = static_cast<letter<unlink_signal>&>(e).body;
      send(u.from, signal::unlink_ack, make_letter<unlink_signal>(plain<unlink_signal>, to, u.number));
      break;
    }
    case signal::monitor: {
      const auto m = static_cast<letter<monitor_signal>&>(e).body;
      untie(m.from, {.local = to, .remote = m.from, .number = m.ref.value(), .what = tie::kind::watched});
      send(m.from, signal::down, make_letter<down>(plain<down>, m.ref, to, why));
      break;
    }
    default: break;
  }
  e.type->drop(*this, e, {loss::kind::unreachable, &why, to});
}

void kernel::deliver(connection_number over, parcel p) {
  const pid to = p.to();
  envelope* e = p.release();
  if (to.node() != node_) {  // for an earlier incarnation
    bounce(to, *e, exit_reason::noproc());
    release(e);
    return;
  }
  const signal s = e->what();
  // Tied on arrival: should the connection be lost before the process has got to this signal, the news of that comes
  // behind it in the same queue.
  if (s == signal::link) {
    link_signal& l = static_cast<letter<link_signal>*>(e)->body;
    l.over = over;
    ties_->add(l.from.node(), {.local = to, .remote = l.from, .what = tie::kind::link, .over = over});
  } else if (s == signal::monitor) {
    const auto m = static_cast<letter<monitor_signal>*>(e)->body;
    ties_->add(m.from.node(),
               {.local = to, .remote = m.from, .number = m.ref.value(), .what = tie::kind::watched, .over = over});
  }
  if (s == signal::exit) {
    send_exit(to, take_body<exited>(*e));
    release(e);
    return;
  }
  send_due(to, e);
}

void kernel::node_lost(node_id node, connection_number lost) {
  for (const tie& t : ties_->take(node, lost)) {
    switch (t.what) {
      case tie::kind::link: send_link_lost(t.local, t.remote, lost); break;
      case tie::kind::monitor:
        send(t.local, signal::down,
             make_letter<down>(plain<down>, monitor_ref{t.number}, t.remote, exit_reason::noconnection()));
        break;
      case tie::kind::watched:
        send(t.local, signal::demonitor,
             make_letter<monitor_signal>(plain<monitor_signal>, t.remote, monitor_ref{t.number}));
        break;
      case tie::kind::call:
        t.fail(*this, t.local, t.number, error{errc::noconnection, "the node of " + to_string(t.remote) + " is lost"});
        break;
    }
  }
  events_->publish(coppice::node_down{node});
}

connection_number kernel::connection_to(pid remote) {
  return transport_ && remote.node() != node_ ? transport_->connect(remote.node()) : 0;
}

void kernel::tie_to(pid remote, tie t) {
  if (remote.node() == node_) return;
  // Once it is tied, the connection must still be there: only then the loss of it is still to come.
  for (;;) {
    t.over = connection_to(remote);
    ties_->add(remote.node(), t);
    if (connection_to(remote) == t.over) return;
    ties_->remove(remote.node(), t);
  }
}
void kernel::untie(pid remote, const tie& t) {
  if (remote.node() != node_) ties_->remove(remote.node(), t);
}

void kernel::await_remote_reply(pid caller, std::uint64_t call, pid callee,
                                void (*fail)(kernel&, pid, std::uint64_t, error)) {
  tie_to(callee, {.local = caller, .remote = callee, .number = call, .what = tie::kind::call, .fail = fail});
}
void kernel::remote_reply_over(pid caller, std::uint64_t call, pid callee) {
  ties_->remove(callee.node(), {.local = caller, .remote = callee, .number = call, .what = tie::kind::call});
}

void kernel::note_dead_letter(pid to, const envelope& e) {
  if (e.type->is_request) return;
  if (logs(log_level::info))
    log_throttled(flood::dead_letters, log_level::info, "dead letter",
                  {{"to", to_string(to)}, {"message", std::string{e.type->name}}});
  count_dead_letter(to, e);
}

void kernel::note_unhandled(pid to, const envelope& e) {
  if (logs(log_level::warning))
    log_throttled(flood::unhandled, log_level::warning,
                  "no handler for a message; does its class list it in its protocol?",
                  {{"pid", to_string(to)}, {"name", name_of(to)}, {"message", std::string{e.type->name}}});
  if (!e.type->is_request) count_dead_letter(to, e);
}

void kernel::count_dead_letter(pid to, const envelope& e) {
  dead_letters_.fetch_add(1, std::memory_order_relaxed);
  // A letter about a dead letter is not worth one of its own.
  if (e.type != &plain<dead_letter>) events_->publish(dead_letter{to, e.type->name});
}

}  // namespace detail
}  // namespace coppice
