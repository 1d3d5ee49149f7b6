#pragma once
/// A mailbox with a limit or with priorities. Mail waits here, where senders can be turned away, and the process's own
/// queue holds one token that says so.
#include <array>
#include <deque>
#include <mutex>

#include <coppice/runtime/detail/kernel.hpp>
#include <coppice/runtime/when_full.hpp>

namespace coppice::detail {

/// In the queue of a process with a mailbox policy: there is mail.
struct mail_token {};

/// Thread safety: any thread, but for `take` and `close`, which are its owner's.
class mailbox_policy {
 public:
  static constexpr int levels = 8;
  static constexpr int usual_level = 4;
  static constexpr std::size_t no_limit = 0;
  /// Tells a sender that it has to wait for room, or that it no longer has to. Called with the policy locked, so that
  /// the first comes before the second.
  using tell = void (*)(kernel&, pid sender, pid receiver, bool waits);

  mailbox_policy(std::size_t capacity, when_full what, bool by_priority, std::chrono::nanoseconds most,
                 tell sender) noexcept
      : waits_at_most{most}, capacity_{capacity}, when_full_{what}, by_priority_{by_priority}, tell_{sender} {}
  mailbox_policy(const mailbox_policy&) = delete;
  mailbox_policy& operator=(const mailbox_policy&) = delete;

  /// Takes the envelope, or gives the one back that has to go. `sender`: an actor, who can wait; nobody: it can't.
  struct outcome {
    envelope* dropped = nullptr;
    bool wake = false;    ///< the owner must get a token
    bool closed = false;  ///< its owner is ending, and nothing was done
  };
  [[nodiscard]] outcome put(kernel& k, pid to, envelope* e, pid sender);
  /// The next one; null: there is none, and the next `put` wakes.
  [[nodiscard]] envelope* take(kernel& k, pid owner);
  /// What is left; and from here on everything is turned away.
  [[nodiscard]] std::vector<envelope*> close(kernel& k, pid owner);
  /// What `sender` has waited for in vain.
  [[nodiscard]] std::vector<envelope*> withdraw(pid sender);
  [[nodiscard]] std::size_t size();
  [[nodiscard]] std::uint64_t dropped();

  const std::chrono::nanoseconds waits_at_most;  // senders do

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
  bool told_ = false;  // a token is on the way
  bool closed_ = false;
};

}  // namespace coppice::detail
