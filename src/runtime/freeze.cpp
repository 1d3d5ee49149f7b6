#include <coppice/runtime/freeze.hpp>

#include "internal/freezer.hpp"

namespace coppice {

const detail::wait_type pending_freeze::how{.take = &pending_freeze::take, .expire = &pending_freeze::expire};

bool pending_freeze::begin(detail::coroutine& me, std::coroutine_handle<> h) {
  kernel_ = &me.host();
  const result<std::uint64_t> number = kernel_->freeze(who_, me.id());
  if (!number) {
    answer_ = std::unexpected{number.error()};
    return false;
  }
  number_ = *number;
  me.wait(h, *this, within_);
  return true;
}

bool pending_freeze::take(detail::waiter& w, detail::coroutine&, detail::envelope& e) {
  return e.type == &detail::plain<detail::freeze_done> &&
         static_cast<detail::letter<detail::freeze_done>&>(e).body.number == static_cast<pending_freeze&>(w).number_;
}

void pending_freeze::expire(detail::waiter& w) {
  auto& mine = static_cast<pending_freeze&>(w);
  mine.answer_ = frozen{.still_inside = mine.kernel_->still_inside(mine.number_)};
}

bool thaw(pid who) { return detail::kernel_here().thaw({.root = who, .subtree = false}); }
bool thaw(subtree who) { return detail::kernel_here().thaw({.root = who.root, .subtree = true}); }

}  // namespace coppice
