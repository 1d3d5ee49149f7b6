#pragma once
/// A mailbox with a limit or with priorities. Its mail waits in the policy, which can refuse messages and make senders
/// wait; tokens in the queue of the process say that the policy has mail.
#include <array>
#include <deque>
#include <mutex>

#include <coppice/runtime/detail/kernel.hpp>
#include <coppice/runtime/mailbox.hpp>
#include <coppice/runtime/observe.hpp>

namespace coppice::detail {

/// The token: tells a process that its mailbox policy has mail.
struct mail_token {
  /// The message being handled in the place of this token; read by a thread that abandons the process. Null for
  /// actors, which keep it in `mail_in_hand`.
  envelope* in_hand = nullptr;
};

/// Thread safety: any thread, except `take` and `close`: only the owner of the process.
class mailbox_policy {
 public:
  static constexpr int levels = 8;
  static constexpr int usual_level = 4;
  static constexpr std::size_t no_limit = 0;
  enum class tokens : std::uint8_t {
    one,   ///< for actors: one token while there is mail. The actor sends itself the next one
    each,  ///< for other processes: a token for each message, which keeps the place of the message among the signals
  };
  /// A process that can wait for room. By default nobody, so the sender can't wait.
  struct sender {
    pid who{};
    /// Called with the policy locked, so that the signals about the beginning and the end of a wait keep their order.
    decltype(body_type::tell_of_room) tell = nullptr;
  };

  mailbox_policy(const coppice::mailbox& how, tokens which) noexcept : box{how}, tokens_{which} {}
  mailbox_policy(const mailbox_policy&) = delete;
  mailbox_policy& operator=(const mailbox_policy&) = delete;

  struct outcome {
    envelope* dropped = nullptr;  ///< the caller must drop it: the new envelope, or an older one that made room for it
    bool closed = false;          ///< the process is ending, and the envelope was not taken
  };
  [[nodiscard]] outcome put(kernel& k, pid to, envelope* e, sender from);
  /// The next envelope. Null: there is none, and an actor needs a new token for the next one.
  [[nodiscard]] envelope* take(kernel& k, pid owner);
  /// Returns the mail that is left and releases the senders that wait. From here on `put` takes nothing.
  [[nodiscard]] std::vector<envelope*> close(kernel& k, pid owner);
  /// Removes and returns the messages of a sender that still wait for room.
  [[nodiscard]] std::vector<envelope*> withdraw(pid from);
  /// How many messages the process has taken and put aside: they take room too.
  void set_put_aside(kernel& k, pid owner, std::size_t count);
  /// The message that `take` would return. Null: none. For the simulation: elsewhere another thread may take it.
  [[nodiscard]] const envelope* next();
  /// Counts the messages by type, also those that wait for room. Returns their number.
  [[nodiscard]] std::size_t count(std::vector<mail_count>& by_type);
  [[nodiscard]] std::uint64_t dropped();
  /// False: the process is as well off without a policy.
  [[nodiscard]] static bool has_effect(const coppice::mailbox& how) noexcept {
    return how.capacity != no_limit || how.by_priority;
  }

  const coppice::mailbox box;

 private:
  struct waiting {
    sender from{};
    envelope* mail = nullptr;
  };
  [[nodiscard]] bool has_room() const noexcept { return box.capacity == no_limit || size_ + aside_ < box.capacity; }
  [[nodiscard]] std::size_t level_of(const envelope& e) const noexcept;
  std::deque<envelope*>& add(envelope* e);
  [[nodiscard]] std::deque<envelope*>* highest_level_with_mail();
  [[nodiscard]] envelope* remove_oldest(std::size_t highest);
  void admit_waiting(kernel& k, pid owner);

  const tokens tokens_;
  std::mutex mutex_;
  std::array<std::deque<envelope*>, levels> mail_;
  std::deque<waiting> waiting_;
  std::size_t size_ = 0;
  std::size_t aside_ = 0;
  std::uint64_t dropped_ = 0;
  bool told_ = false;  // with one token: it was sent, and `take` has not found the policy empty since
  bool closed_ = false;
};

}  // namespace coppice::detail
