#include <coppice/runtime/freeze.hpp>

#include "internal/freezer.hpp"

namespace coppice {

void pending_freeze::describe(const detail::waiter& w, wait_info& into) {
  into.kind = wait_kind::freeze;
  into.whom = static_cast<const pending_freeze&>(w).who_.root;
}

const detail::wait_type pending_freeze::how{
    .take = &pending_freeze::take, .expire = &pending_freeze::expire, .describe = &pending_freeze::describe};

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
  if (e.type != &detail::plain<detail::freeze_done>) return false;
  auto& mine = static_cast<pending_freeze&>(w);
  const detail::freeze_done& done = static_cast<detail::letter<detail::freeze_done>&>(e).body;
  if (done.number != mine.number_) return false;
  if (done.undone) mine.look_who_is_inside();  // an error: the freeze is not in force any more
  return true;
}

void pending_freeze::expire(detail::waiter& w) { static_cast<pending_freeze&>(w).look_who_is_inside(); }

void pending_freeze::look_who_is_inside() {
  result<std::vector<pid>> inside = kernel_->stop_waiting_for_freeze(who_, number_);
  if (inside)
    answer_ = frozen{.still_inside = std::move(*inside)};
  else
    answer_ = std::unexpected{std::move(inside.error())};
}

bool thaw(pid who) { return detail::kernel_here().thaw({.root = who, .subtree = false}); }
bool thaw(subtree who) { return detail::kernel_here().thaw({.root = who.root, .subtree = true}); }

}  // namespace coppice
