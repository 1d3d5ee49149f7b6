#pragma once
/// The mailbox policies of the processes that have one.
#include <array>
#include <mutex>
#include <unordered_map>

#include <coppice/runtime/detail/mailbox_policy.hpp>

namespace coppice::detail {

/// The message that the process handles now, if its body or its mailbox policy has taken it in the place of the head of
/// the queue. Null: it handles the head itself.
[[nodiscard]] envelope* taken_for_head(const slot& p) noexcept;

/// Thread safety: any thread.
class mailbox_policies {
 public:
  explicit mailbox_policies(kernel& k) noexcept : kernel_{k}, table_{k.table()} {}

  /// Called before the process is started, so before another process can have its pid.
  void set(pid who, std::shared_ptr<mailbox_policy> policy);
  /// Null: it has none.
  [[nodiscard]] std::shared_ptr<mailbox_policy> of(pid who);
  /// Called when the process ends: returns the mail left and releases the senders that wait for room.
  [[nodiscard]] std::vector<envelope*> close(pid who);
  /// Passes the envelope to the policy of `to`. False: nothing was done, because the message bypasses policies or the
  /// process has none.
  [[nodiscard]] bool put(pid to, envelope* e);
  /// Drops a message for which there is no room: a dead letter, or an error for its caller.
  void turn_away(pid to, envelope* e);
  /// Sends an actor the signal that its policy has mail.
  void push_actor_token(pid who);
  /// Puts a token for one message into the queue of another process, behind everything this thread has sent before.
  void push_mail_token(pid who);
  /// See `mailbox_policy::set_put_aside`.
  void set_put_aside(pid who, std::size_t count);
  /// The mail of all processes, when the runtime ends.
  [[nodiscard]] std::vector<envelope*> close_all();

 private:
  struct shard {
    std::mutex mutex;
    std::unordered_map<pid, std::shared_ptr<mailbox_policy>> policies;
  };
  [[nodiscard]] shard& shard_of(pid who) noexcept { return shards_[who.index() % shards_.size()]; }
  [[nodiscard]] mailbox_policy::sender sender_that_can_wait(pid to) const noexcept;

  kernel& kernel_;
  process_table& table_;
  std::array<shard, 64> shards_;
};

}  // namespace coppice::detail
