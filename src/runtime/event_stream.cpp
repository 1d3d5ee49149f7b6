#include <algorithm>
#include <array>

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/detail/event_stream.hpp>

namespace coppice::detail {

void event_stream::subscribe(const message_type& type, pid who) {
  const std::scoped_lock lock{mutex_};
  const bool there = std::ranges::any_of(entries_, [&](const entry& e) { return e.type == &type && e.who == who; });
  if (there) return;
  entries_.push_back({&type, who});
  count_of(type).fetch_add(1, std::memory_order_relaxed);
}

bool event_stream::unsubscribe(const message_type& type, pid who) {
  const std::scoped_lock lock{mutex_};
  return remove_if([&](const entry& e) { return e.type == &type && e.who == who; });
}

std::vector<pid> event_stream::subscribers(const message_type& type) {
  const std::scoped_lock lock{mutex_};
  (void)remove_if([&](const entry& e) { return !kernel_.alive(e.who); });
  std::vector<pid> found;
  for (const entry& e : entries_)
    if (e.type == &type) found.push_back(e.who);
  return found;
}

namespace {
/// Each of these has a `tracer::saw`.
constexpr std::array<const message_type*, 3> seen_by_tracer{&plain<process_ended>, &plain<process_stalled>,
                                                            &plain<dead_letter>};
}  // namespace

bool event_stream::is_seen(const message_type& type) noexcept {
  return std::ranges::find(seen_by_tracer, &type) != seen_by_tracer.end();
}

void event_stream::set_tracer(tracer& by) {
  tracer_ = &by;
  for (const message_type* each : seen_by_tracer) count_of(*each).fetch_add(1, std::memory_order_relaxed);
}

template <class Unwanted>
bool event_stream::remove_if(const Unwanted& unwanted) {
  return std::erase_if(entries_, [&](const entry& e) {
           if (!unwanted(e)) return false;
           const std::uint32_t before = count_of(*e.type).fetch_sub(1, std::memory_order_relaxed);
           ensure(before > 0, "more subscriptions of an event were removed than made");
           return true;
         }) != 0;
}

}  // namespace coppice::detail
