#include "internal/child_list.hpp"

#include <limits>

namespace coppice::detail {

child_list::child_list(std::vector<child_spec> specs) {
  order_.reserve(specs.size());
  for (child_spec& each : specs) add(std::move(each));
}

void child_list::append(std::unique_ptr<supervised> c) {
  ensure(order_.size() < std::numeric_limits<std::uint32_t>::max(), "a supervisor has no place for another child");
  c->place = static_cast<std::uint32_t>(order_.size());
  order_.push_back(std::move(c));
}

supervised& child_list::add(child_spec spec) {
  append(std::make_unique<supervised>(std::move(spec)));
  supervised& c = *order_.back();
  if (indexed_) by_id_.emplace(c.id(), &c);
  return c;
}

void child_list::remove(supervised& c) {
  ensure(c.place < order_.size() && order_[c.place].get() == &c, "a child is not at its place in the list");
  ensure(!c.wait, "a child was removed while a restart waits for its backoff");
  if (indexed_) by_id_.erase(c.id());
  ++gaps_;
  order_[c.place].reset();
}

void child_list::clear_gaps() {
  ensure(gaps_ <= order_.size(), "a list of children has more gaps than places");
  if (gaps_ * 2 <= order_.size()) return;
  std::erase(order_, nullptr);
  gaps_ = 0;
  for (std::size_t i = 0; i < order_.size(); ++i) order_[i]->place = static_cast<std::uint32_t>(i);
}

void child_list::upgrade(std::vector<child_spec> specs) {
  build_index();
  std::vector<std::unique_ptr<supervised>> before = std::exchange(order_, {});
  gaps_ = 0;
  for (child_spec& spec : specs) {
    const auto known = by_id_.find(spec.id);
    if (known == by_id_.end()) {
      add(std::move(spec));
      continue;
    }
    supervised& c = *known->second;
    ensure(c.place < before.size() && before[c.place].get() == &c, "a child is not at its place in the list");
    by_id_.erase(known);  // its key refers to the id in the spec that is replaced
    c.become(std::move(spec));
    by_id_.emplace(c.id(), &c);
    append(std::move(before[c.place]));
  }
  for (auto& c : before)
    if (c) append(std::move(c));
}

void child_list::build_index() {
  if (indexed_) return;
  by_id_.reserve(size());
  for_each([&](supervised& c) { by_id_.emplace(c.id(), &c); });
  indexed_ = true;
}

result<supervised*> child_list::find(std::string_view id) {
  build_index();
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return fail(errc::not_found, "there is no child '" + std::string{id} + "'");
  return found->second;
}

}  // namespace coppice::detail
