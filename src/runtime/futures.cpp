#include "internal/futures.hpp"

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/self.hpp>

#include "internal/kernel_parts.hpp"

namespace coppice::detail {

void futures::add(slot& me, const std::shared_ptr<future_base>& f) {
  side_block& side = side_of(table_, me);
  f->number = ++side.refs;  // never the number of a call of the process: those are below 2^32
  const bool fresh = side.futures.insert(f->number, f);
  ensure(fresh, "a new future has the number of another one");
}

void futures::remove(slot& me, std::uint64_t number) {
  if (me.side != nullptr) (void)me.side->futures.take(number);
}

bool futures::take_answer(slot& p, envelope& e) {
  if (e.what() != signal::reply || p.side == nullptr || e.type->mail.open == nullptr) return false;
  mail_origin origin;
  void* answer = e.type->mail.open(e, origin);
  const std::shared_ptr<future_base>* waiting = p.side->futures.find(origin.call);
  if (waiting == nullptr || (*waiting)->reply != e.type) return false;  // it is too late, or forged
  const auto f = std::move(*p.side->futures.take(origin.call));
  f->complete(kernel_, answer);
  e.type->drop(kernel_, e, {});
  return true;
}

void futures::fail_all(const future_map& pending, const exit_reason& why) {
  pending.for_each([&](std::uint64_t, const std::shared_ptr<future_base>& f) {
    f->fail(kernel_, error_of({loss::kind::ended, &why}));
  });
}

// ---- for templates

void add_future(self& owner, const std::shared_ptr<future_base>& f) {
  const kernel_section mine{owner.process(), owner.id().serial()};
  if (!mine) throw std::logic_error{"make_promise was called outside of the process that the future is for"};
  owner.host().add_future(owner.process(), f);
}

void remove_future(self& owner, std::uint64_t number) {
  if (const kernel_section mine{owner.process(), owner.id().serial()})
    owner.host().remove_future(owner.process(), number);
}

void must_be_owner(const future_base& f, pid me) {
  if (f.owner == me) return;
  throw std::logic_error{"this future belongs to " + to_string(f.owner) + "; " + to_string(me) + " can't use it"};
}

void throw_future_awaited_before() { throw std::logic_error{"this future was awaited before"}; }

bool take_answer_of_future(turn& t, envelope& e) {
  // The process may be abandoned meanwhile, and then its side block belongs to another thread.
  const kernel_section mine{*t.p, e.serial()};
  return mine && t.k->parts().futures.take_answer(*t.p, e);
}

}  // namespace coppice::detail
