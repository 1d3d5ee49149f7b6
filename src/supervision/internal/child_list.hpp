#pragma once
/// The children of a supervisor in the order of their start.
#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "supervised.hpp"

namespace coppice::detail {

/// A removed child leaves a gap, so that places stay valid in a loop over the list that awaits something.
class child_list {
 public:
  explicit child_list(std::vector<child_spec> specs);

  /// Adds a child behind the others.
  supervised& add(child_spec spec);
  /// Destroys the child and leaves a gap.
  void remove(supervised& c);
  /// Closes the gaps if there are many. Changes places: must not be called during a loop over the list.
  void clear_gaps();
  /// Gives the children with the ids of these specs their new specs, adds the others, and orders all of them as the
  /// specs are. Children that no spec names follow, in the order they had. Changes places, as `clear_gaps` does.
  void upgrade(std::vector<child_spec> specs);

  /// Error: `not_found`. The first call builds the index, so supervisors without calls by id do not pay for it.
  [[nodiscard]] result<supervised*> find(std::string_view id);

  /// The number of places, gaps included.
  [[nodiscard]] std::size_t places() const noexcept { return order_.size(); }
  /// The number of children.
  [[nodiscard]] std::size_t size() const noexcept { return order_.size() - gaps_; }
  /// Null: a gap.
  [[nodiscard]] supervised* at(std::size_t place) const noexcept { return order_[place].get(); }
  /// Calls `visit` for each child in the order of start.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& c : order_)
      if (c) visit(*c);
  }
  /// Whether `test` is true for at least one child.
  template <class Test>
  [[nodiscard]] bool any_of(Test&& test) const {
    return std::ranges::any_of(order_, [&](const auto& c) { return c && test(*c); });
  }

 private:
  void build_index();
  void append(std::unique_ptr<supervised> c);

  std::vector<std::unique_ptr<supervised>> order_;
  std::size_t gaps_ = 0;
  std::unordered_map<std::string_view, supervised*> by_id_;  // the keys refer to the ids in the children
  bool indexed_ = false;
};

}  // namespace coppice::detail
