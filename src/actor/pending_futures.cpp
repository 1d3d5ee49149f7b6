#include <coppice/actor/detail/pending_futures.hpp>
#include <coppice/base/ensure.hpp>

namespace coppice::detail {

namespace {
template <class Map>
pending_futures::pointer take_from(Map& all, std::uint64_t number) {
  auto found = all.extract(number);
  return found.empty() ? nullptr : std::move(found.mapped());
}
}  // namespace

void pending_futures::add_answer(pointer f) {
  const std::uint64_t number = f->number;
  const bool added = answers_.emplace(number, std::move(f)).second;
  ensure(added, "two pending futures of an actor have the same number");
}

void pending_futures::add_end(monitor_ref by, pointer f) {
  const bool added = ends_.emplace(by.value(), std::move(f)).second;
  ensure(added, "two futures wait for the same monitor");
}

pending_futures::pointer pending_futures::take_answer(std::uint64_t number) { return take_from(answers_, number); }
pending_futures::pointer pending_futures::take_end(std::uint64_t monitor) { return take_from(ends_, monitor); }

const future_base* pending_futures::find_answer(std::uint64_t number) const {
  const auto found = answers_.find(number);
  return found != answers_.end() ? found->second.get() : nullptr;
}

void pending_futures::drop_continuations() noexcept {
  for (const auto* all : {&answers_, &ends_})
    for (const auto& [number, f] : *all) (void)take_continuations(*f);
}

void pending_futures::fail_all(kernel& k, const loss& how) {
  for (const auto* all : {&answers_, &ends_})
    for (const auto& [number, f] : *all) fail_future(k, *f, how);
  for (const pointer& f : done_too_late_) fail_future(k, *f, how);
}

void fail_future(kernel& k, future_base& f, const loss& how) {
  k.disarm(f.due);
  f.fail(k, error_of(how));
  for (continuation& c : take_continuations(f)) c.call.drop(error_of(how));
}

}  // namespace coppice::detail
