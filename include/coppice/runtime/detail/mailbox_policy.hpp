#pragma once
/// A mailbox with a limit or with priorities. Its mail waits in the policy, which can refuse messages and make senders
/// wait; a token in the queue of the process says that the policy has mail.
#include <array>
#include <deque>
#include <mutex>

#include <coppice/runtime/detail/kernel.hpp>
#include <coppice/runtime/when_full.hpp>
#include <coppice/runtime/observe.hpp>

namespace coppice::detail {

/// The token: tells a process that its mailbox policy has mail.
struct mail_token {};

/// Thread safety: any thread, except `take` and `close`: only the owner of the process.
class mailbox_policy {
 public:
  static constexpr int levels = 8;
  static constexpr int usual_level = 4;
  static constexpr std::size_t no_limit = 0;
  /// Tells a sender that it has to wait for room, or that it no longer has to. Called with the policy locked, so that
  /// the two signals are sent in this order.
  using tell = void (*)(kernel&, pid sender, pid receiver, bool waits);

  mailbox_policy(std::size_t capacity, when_full what, bool by_priority, std::chrono::nanoseconds most,
                 tell sender) noexcept
      : waits_at_most{most}, capacity_{capacity}, when_full_{what}, by_priority_{by_priority}, tell_{sender} {}
  mailbox_policy(const mailbox_policy&) = delete;
  mailbox_policy& operator=(const mailbox_policy&) = delete;

  struct outcome {
    envelope* dropped = nullptr;  ///< the caller must drop it: the new envelope, or an older one that made room for it
    bool wake = false;            ///< the caller must send the process a token
    bool closed = false;          ///< the process is ending, and the envelope was not taken
  };
  /// Takes an envelope. `sender`: an actor that can wait for room; nobody: the sender can't wait.
  [[nodiscard]] outcome put(kernel& k, pid to, envelope* e, pid sender);
  /// The next envelope. Null: there is none, and the process needs a new token for the next one.
  [[nodiscard]] envelope* take(kernel& k, pid owner);
  /// Returns the mail that is left and releases the senders that wait. From here on `put` takes nothing.
  [[nodiscard]] std::vector<envelope*> close(kernel& k, pid owner);
  /// Removes and returns the messages of `sender` that still wait for room.
  [[nodiscard]] std::vector<envelope*> withdraw(pid sender);
  /// Counts the messages by type, also those that wait for room. Returns their number.
  [[nodiscard]] std::size_t count(std::vector<mail_count>& by_type);
  [[nodiscard]] std::uint64_t dropped();

  const std::chrono::nanoseconds waits_at_most;  // how long a sender waits for room

 private:
  struct waiting {
    pid sender{};
    envelope* mail = nullptr;
  };
  [[nodiscard]] std::size_t level_of(const envelope& e) const noexcept;
  void add(envelope* e);
  [[nodiscard]] envelope* remove_oldest(std::size_t highest);

  const std::size_t capacity_;
  const when_full when_full_;
  const bool by_priority_;
  const tell tell_;
  std::mutex mutex_;
  std::array<std::deque<envelope*>, levels> mail_;
  std::deque<waiting> waiting_;
  std::size_t size_ = 0;
  std::uint64_t dropped_ = 0;
  bool told_ = false;  // a token was sent, and `take` has not found the policy empty since
  bool closed_ = false;
};

}  // namespace coppice::detail
