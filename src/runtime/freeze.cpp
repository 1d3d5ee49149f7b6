#include <coppice/runtime/freeze.hpp>

#include "internal/freezer.hpp"

namespace coppice {

namespace detail {

const wait_type freezing::how{.take = &freezing::take, .expire = &freezing::expire};

bool freezing::begin(coroutine& me, std::coroutine_handle<> h) {
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

bool freezing::take(waiter& w, coroutine&, envelope& e) {
  return e.type == &plain<freeze_done> &&
         static_cast<letter<freeze_done>&>(e).body.number == static_cast<freezing&>(w).number_;
}

void freezing::expire(waiter& w) {
  auto& mine = static_cast<freezing&>(w);
  mine.answer_ = frozen{.still_inside = mine.kernel_->still_inside(mine.number_)};
}

}  // namespace detail

bool thaw(pid who) { return detail::kernel_here().thaw({.root = who, .subtree = false}); }
bool thaw(subtree who) { return detail::kernel_here().thaw({.root = who.root, .subtree = true}); }

}  // namespace coppice
