#include <coppice/runtime/detail/process_end.hpp>
#include <coppice/runtime/detail/starting.hpp>

namespace coppice::detail {

const wait_type waiting_for_end::how{.take = &take, .expire = [](waiter&) {}};

bool waiting_for_end::take(waiter& w, coroutine&, envelope& e) {
  auto& mine = static_cast<waiting_for_end&>(w);
  if (e.type == &plain<exited>) {
    const exited& x = static_cast<letter<exited>&>(e).body;
    if (!x.linked || !mine.awaits(x.from)) {
      if (mine.others_ != nullptr) mine.others_->saw(x);
      return false;
    }
    exited taken = take_body<exited>(e);
    mine.end_ = process_end{taken.from, std::move(taken.reason)};
    return true;
  }
  if (e.type == &plain<child_ended>) {
    // Each of several processes is monitored, and its `down` must not be left in the mailbox.
    if (mine.several_ != nullptr || !mine.awaits(static_cast<letter<child_ended>&>(e).body.who)) return false;
    child_ended taken = take_body<child_ended>(e);
    mine.end_ = process_end{taken.who, std::move(taken.reason)};
    return true;
  }
  if (e.type != &plain<down> || !mine.awaits(static_cast<letter<down>&>(e).body)) return false;
  down taken = take_body<down>(e);
  mine.end_ = process_end{taken.who, std::move(taken.reason)};
  return true;
}

}  // namespace coppice::detail
