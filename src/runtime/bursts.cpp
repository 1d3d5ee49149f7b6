// Messages held back for a moment and pushed together; see `burst` in burst.hpp.
#include <coppice/runtime/detail/kernel.hpp>

namespace coppice::detail {

void kernel::open_burst(turn& t, slot& p) {
  if (t.out.target != nullptr) flush_burst(t);  // a thread has one burst at a time
  t.out.target = &p;
}

void kernel::add_to_burst(turn& t, envelope* e) {
  burst& b = t.out;
  (void)b.lock.enter();
  if (b.last != nullptr)
    b.last->next.store(e, std::memory_order_relaxed);
  else
    b.first = e;
  b.last = e;
  if (++b.count >= burst::length) push_burst(b);
  b.lock.leave();
}

void kernel::push_burst(burst& b) {
  if (b.first == nullptr) return;
  envelope* first = std::exchange(b.first, nullptr);
  envelope* last = std::exchange(b.last, nullptr);
  b.count = 0;
  if (b.target->mail.push_chain(first, last)) schedule(*b.target);
}

void kernel::flush_burst(turn& t) {
  burst& b = t.out;
  (void)b.lock.enter();
  push_burst(b);
  b.target = nullptr;
  b.in_a_row = 0;
  b.lock.leave();
}

void kernel::flush_from_outside(turn& t) {
  burst& b = t.out;
  b.lock.enter_from_outside(*env_->threads());
  push_burst(b);
  b.lock.leave_from_outside(biased_lock::access::open);
}

}  // namespace coppice::detail
