#include <coppice/actor/props.hpp>

namespace coppice::detail {

namespace {
template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}
}  // namespace

void change(actor_settings& s, const actor_options& by) {
  if (by.strategy) s.strategy = *by.strategy;
  if (by.guardian) {
    if (by.guardian->get().all)
      throw std::invalid_argument{"actor_options::guardian: all_for_one has no others to restart; use one_for_one"};
    s.guardian = by.guardian;
  }
  if (by.mailbox) {
    if (const auto sensible = by.mailbox->check(); !sensible)
      throw std::invalid_argument{"actor_options::" + std::string{sensible.error().text()}};
    s.mailbox = *by.mailbox;
  }
  append(s.on_receive, by.on_receive);
  append(s.on_send, by.on_send);
  append(s.on_init, by.on_init);
  if (by.keep_children) s.keep_children = *by.keep_children;
  if (by.watch_children) s.watch_children = *by.watch_children;
  if (by.shutdown) {
    if (!by.shutdown->is_brutal() && by.shutdown->time().count() < 0)
      throw std::invalid_argument{"actor_options::shutdown: the time is negative"};
    s.shutdown = *by.shutdown;
  }
  if (by.abandon_after) {
    if (by.abandon_after->count() <= 0)
      throw std::invalid_argument{"actor_options::abandon_after: the time must be positive"};
    s.abandon_after = *by.abandon_after;
  }
}

}  // namespace coppice::detail
