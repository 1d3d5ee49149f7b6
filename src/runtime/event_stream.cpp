#include <algorithm>

#include <coppice/runtime/detail/event_stream.hpp>

namespace coppice::detail {

void event_stream::subscribe(const message_type& type, pid who) {
  const std::scoped_lock lock{mutex_};
  const bool there = std::ranges::any_of(entries_, [&](const entry& e) { return e.type == &type && e.who == who; });
  if (there) return;
  entries_.push_back({&type, who});
  count_ = entries_.size();
}

bool event_stream::unsubscribe(const message_type& type, pid who) {
  const std::scoped_lock lock{mutex_};
  const auto gone = std::erase_if(entries_, [&](const entry& e) { return e.type == &type && e.who == who; });
  count_ = entries_.size();
  return gone != 0;
}

std::vector<pid> event_stream::subscribers(const message_type& type) {
  const std::scoped_lock lock{mutex_};
  std::erase_if(entries_, [&](const entry& e) { return !kernel_.alive(e.who); });
  count_ = entries_.size();
  std::vector<pid> found;
  for (const entry& e : entries_)
    if (e.type == &type) found.push_back(e.who);
  return found;
}

}  // namespace coppice::detail
