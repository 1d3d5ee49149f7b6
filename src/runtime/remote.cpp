#include "internal/remote.hpp"

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/detail/event_stream.hpp>

#include "internal/exits.hpp"
#include "internal/kernel_parts.hpp"
#include "internal/link_signals.hpp"

namespace coppice {

parcel::~parcel() {
  if (signal_ != nullptr) detail::discard(*sender_, signal_, {detail::loss::kind::vanished, nullptr});
}

namespace detail {

void remote::send_elsewhere(pid to, envelope* e) {
  if (kernel_.crashed()) {
    discard(kernel_, e);
    return;
  }
  if (!to || to.node() == node_) {  // nobody, an index this table never had, or a slot that has another process now
    bounce(to, *e, exit_reason::noproc());
    release(e);
    return;
  }
  // A link goes over the connection it is tied to, or not at all.
  const connection_number over =
      e->what() == signal::link ? static_cast<letter<link_signal>*>(e)->body.over : connection_to(to);
  if (over != 0) {
    const std::shared_ptr<transport> by = transport_.load();
    ensure(by != nullptr, "a connection without a transport");
    parcel out{kernel_.shared_from_this(), to, e};
    if ((e->tag & envelope::has_trace) != 0) out.set_trace(kernel_.parts().trace_ids.take(*e));
    if (by->send(over, out)) return;
    e = out.release();
  }
  bounce(to, *e, exit_reason::noconnection());
  release(e);
}

void remote::bounce(pid to, envelope& e, const exit_reason& why) {
  switch (e.what()) {
    case signal::message: kernel_.note_dead_letter(to, e); break;
    case signal::exit: kernel_.parts().lifecycle.log_unreported(static_cast<letter<exited>&>(e).body); break;
    case signal::link: {
      const link_signal l = static_cast<letter<link_signal>&>(e).body;
      untie({.local = to, .remote = l.from, .what = tie::kind::link, .over = l.over});
      if (why.what() == exit_reason::kind::noconnection)
        kernel_.parts().exits.send_link_lost(l.from, to, l.over);
      else
        kernel_.send_exit(l.from, {to, why, true});
      break;
    }
    case signal::unlink: {
      const auto u = static_cast<letter<unlink_signal>&>(e).body;
      kernel_.send(u.from, signal::unlink_ack, make_letter<unlink_signal>(plain<unlink_signal>, to, u.number));
      break;
    }
    case signal::monitor: {
      const auto m = static_cast<letter<monitor_signal>&>(e).body;
      untie({.local = to, .remote = m.from, .number = m.ref.value(), .what = tie::kind::watched});
      kernel_.send(m.from, signal::down, make_letter<down>(plain<down>, m.ref, to, why));
      break;
    }
    default: break;
  }
  e.type->drop(kernel_, e, {loss::kind::unreachable, &why, to});
  if ((e.tag & envelope::has_trace) != 0) [[unlikely]]
    forget_trace(kernel_, e);
}

void remote::deliver(connection_number over, parcel p) {
  const pid to = p.to();
  const trace_scope sent_in{p.trace()};
  const in_trace also_here{p.trace()};  // where a process delivers it
  envelope* e = p.release();
  if (to.node() != node_) {  // sent to an earlier start of this node
    bounce(to, *e, exit_reason::noproc());
    release(e);
    return;
  }
  // Links and monitors are tied to the connection on arrival. Should the connection be lost before the process has
  // handled this signal, the signal about the loss comes behind it in the same queue.
  switch (e->what()) {
    case signal::link: {
      link_signal& l = static_cast<letter<link_signal>*>(e)->body;
      l.over = over;
      tie_over({.local = to, .remote = l.from, .what = tie::kind::link, .over = over});
      break;
    }
    case signal::monitor: {
      const auto m = static_cast<letter<monitor_signal>*>(e)->body;
      tie_over({.local = to, .remote = m.from, .number = m.ref.value(), .what = tie::kind::watched, .over = over});
      break;
    }
    case signal::exit:
      kernel_.send_exit(to, take_body<exited>(*e));
      release(e);
      return;
    case signal::fast: kernel_.send_fast(to, e); return;
    default: break;
  }
  kernel_.send(to, e->what(), e);
}

void remote::node_lost(node_id node, connection_number lost) {
  for (const tie& t : ties_.take(node, lost)) {
    switch (t.what) {
      case tie::kind::link: kernel_.parts().exits.send_link_lost(t.local, t.remote, lost); break;
      case tie::kind::monitor:
        kernel_.send(t.local, signal::down,
                     make_letter<down>(plain<down>, monitor_ref{t.number}, t.remote, exit_reason::noconnection()));
        break;
      case tie::kind::watched:
        kernel_.send(t.local, signal::demonitor,
                     make_letter<monitor_signal>(plain<monitor_signal>, t.remote, monitor_ref{t.number}));
        break;
      case tie::kind::call:
        t.fail(kernel_, t.local, t.number,
               error{errc::noconnection, "the node of " + to_string(t.remote) + " is lost"});
        break;
    }
  }
  kernel_.events().publish(coppice::node_down{node});
}

connection_number remote::connection_to(pid who) {
  if (who.node() == node_) return 0;
  const std::shared_ptr<transport> by = transport_.load();
  return by != nullptr ? by->connect(who.node()) : 0;
}

void remote::tie_to(tie t) {
  if (t.remote.node() == node_) return;
  // If the connection was lost before the tie was added, `node_lost` did not see the tie. Then tie to the new one.
  for (;;) {
    t.over = connection_to(t.remote);
    tie_over(t);
    if (connection_to(t.remote) == t.over) return;
    untie(t);
  }
}

}  // namespace detail
}  // namespace coppice
