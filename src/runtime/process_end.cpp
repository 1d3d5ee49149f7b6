#include <coppice/runtime/detail/process_end.hpp>

namespace coppice::detail {

std::optional<process_end> take_end(envelope& e, const awaited_end& which, death_watcher* others) {
  if (e.type == &plain<exited>) {
    const exited& x = static_cast<letter<exited>&>(e).body;
    if (!x.linked || !which.is(x.from)) {
      if (others != nullptr) others->saw(x);
      return std::nullopt;
    }
    exited taken = take_body<exited>(e);
    return process_end{taken.from, std::move(taken.reason)};
  }
  if (e.type == &plain<child_ended>) {
    // Each of several processes is monitored, and its `down` must not be left in the mailbox.
    if (which.several != nullptr || !which.is(static_cast<letter<child_ended>&>(e).body.who)) return std::nullopt;
    child_ended taken = take_body<child_ended>(e);
    return process_end{taken.who, std::move(taken.reason)};
  }
  if (e.type != &plain<down> || !which.is(static_cast<letter<down>&>(e).body)) return std::nullopt;
  down taken = take_body<down>(e);
  return process_end{taken.who, std::move(taken.reason)};
}

void waiting_for_end::describe(const waiter& w, wait_info& into) {
  into.kind = wait_kind::end;
  into.whom = static_cast<const waiting_for_end&>(w).which_.who;
}

const wait_type waiting_for_end::how{.take = &take, .expire = [](waiter&) {}, .describe = &describe};

bool waiting_for_end::take(waiter& w, coroutine&, envelope& e) {
  auto& mine = static_cast<waiting_for_end&>(w);
  mine.end_ = take_end(e, mine.which_, mine.others_);
  return mine.end_.has_value();
}

}  // namespace coppice::detail
