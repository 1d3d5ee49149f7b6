#pragma once
/// Exit signals: sending them, receiving them, and finding the one that ends its receiver ahead of the mail in front.
#include "links.hpp"

namespace coppice::detail {

class process_runner;
class lifecycle;

/// Thread safety: `send`, `send_link_lost`, `looked_at` and `count_looked_at` from any thread, the others for the owner
/// of the slot.
class exits {
 public:
  exits(kernel& k, links& l) noexcept : kernel_{k}, table_{k.table()}, links_{l} {}

  void send(pid to, exited x);
  /// The connection that carried the link of `to` with `other` is lost.
  void send_link_lost(pid to, pid other, connection_number lost);
  [[nodiscard]] bool end_idle(slot& me, pid child, const exit_reason& why, lifecycle& life);

  /// Handles an exit signal that has reached the head of the queue.
  [[nodiscard]] verdict receive(slot& p, envelope& e, turn& t, process_runner& r);
  [[nodiscard]] verdict receive_link_lost(slot& p, envelope& e, turn& t, process_runner& r);

  /// Searches the queue from `from` for a signal that ends the process now. True: there is one, and its reason is in
  /// `t.ending`. False: there is none; if a push is only half done, `look_for_exit` is set again.
  [[nodiscard]] bool find(slot& p, envelope* from, turn& t);
  /// As `find`, for a frozen process: looks only for a kill, and counts nothing.
  [[nodiscard]] bool find_kill(slot& p, envelope* from, turn& t);
  /// How many signals were looked at before their turn.
  [[nodiscard]] std::uint64_t looked_at() const noexcept { return looked_at_.load(std::memory_order_relaxed); }
  void count_looked_at(std::uint32_t n) noexcept { looked_at_.fetch_add(n, std::memory_order_relaxed); }

 private:
  void settle_links(slot& p, envelope* from, const envelope* kill);
  void drop_ahead(envelope& e);
  void look_again_if_hidden(slot& p, const envelope* last);

  kernel& kernel_;
  process_table& table_;
  links& links_;
  std::atomic<std::uint64_t> looked_at_{0};
};

}  // namespace coppice::detail
