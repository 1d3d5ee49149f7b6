#include <algorithm>

#include <coppice/actor/detail/child_table.hpp>

namespace coppice::detail {

child_record* child_table::find(pid who) noexcept {
  const auto found = records_.find(who);
  return found != records_.end() ? &found->second : nullptr;
}

child_record* child_table::find_place(std::uint64_t place) noexcept {
  const auto found = std::ranges::find(records_, place, [](const auto& each) { return each.second.place; });
  return found != records_.end() ? &found->second : nullptr;
}

std::vector<child_record*> child_table::in_order() {
  std::vector<child_record*> all;
  for (auto& [who, c] : records_) all.push_back(&c);
  std::ranges::sort(all, {}, &child_record::place);
  return all;
}

void child_table::add(child_record c) {
  const pid who = c.who;
  const bool added = records_.emplace(who, std::move(c)).second;
  ensure(added, "a child was added twice");
}

child_record child_table::remove(pid who) {
  auto found = records_.extract(who);
  ensure(!found.empty(), "a child was removed twice");
  return std::move(found.mapped());
}

}  // namespace coppice::detail
