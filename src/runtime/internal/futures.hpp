#pragma once
/// Pending futures of processes that are not actors.
#include <coppice/runtime/detail/future_state.hpp>

#include "side_block.hpp"

namespace coppice::detail {

/// Thread safety: for the owner of the slot.
class futures {
 public:
  explicit futures(kernel& k) noexcept : kernel_{k}, table_{k.table()} {}

  /// Gives the future its number, and completes it when a reply with that number arrives.
  void add(slot& me, const std::shared_ptr<future_base>& f);
  void remove(slot& me, std::uint64_t number);
  /// Completes the future that the reply belongs to, and leaves the envelope empty. False: it belongs to none.
  [[nodiscard]] bool take_answer(slot& p, envelope& e);
  /// The process has ended: receivers that `pipe_to` has named get an error.
  void fail_all(const future_map& pending, const exit_reason& why);

 private:
  kernel& kernel_;
  process_table& table_;
};

}  // namespace coppice::detail
