#pragma once
/// A mailbox with a limit or with priorities. Mail waits here, where senders can be turned away, and the process's own
/// queue holds one token that says so.
#include <array>
#include <deque>
#include <mutex>

#include <coppice/runtime/detail/kernel.hpp>

namespace coppice::detail {

/// In the queue of a process with a gate: there is mail, or (`opens`) what comes from now on goes through the gate.
struct gate_token {
  bool opens = false;
};

/// Thread safety: any thread, but for `take` and `close`, which are its owner's.
class gate {
 public:
  enum class when_full : std::uint8_t { drop_newest, drop_oldest, sender_waits };
  static constexpr int levels = 8;
  static constexpr int usual_level = 4;
  static constexpr std::size_t no_limit = 0;
  /// Tells an actor that it waits for room, or does no longer. Called with the gate locked, so that the one comes
  /// before the other.
  using tell = void (*)(kernel&, pid sender, pid receiver, bool waits);

  gate(std::size_t capacity, when_full what, bool by_priority, std::chrono::nanoseconds most, tell sender) noexcept
      : waits_at_most{most}, capacity_{capacity}, when_full_{what}, by_priority_{by_priority}, tell_{sender} {}
  gate(const gate&) = delete;
  gate& operator=(const gate&) = delete;

  /// Takes the envelope, or gives the one back that has to go. `sender`: an actor, who can wait; nobody: it can't.
  struct outcome {
    envelope* dropped = nullptr;
    bool wake = false;  ///< the owner must get a token
  };
  [[nodiscard]] outcome put(kernel& k, pid to, envelope* e, pid sender);
  /// By its owner: what came before there was a gate, and so before all that waits for it to open.
  [[nodiscard]] outcome put_own(kernel& k, pid owner, envelope* e);
  /// By its owner, who has all that came before. Gives back what has to go.
  [[nodiscard]] std::vector<envelope*> open(kernel& k, pid owner);
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
    pid sender;
    envelope* mail;
  };
  [[nodiscard]] outcome admit(kernel& k, pid to, envelope* e, pid sender);
  void add(envelope* e);
  [[nodiscard]] envelope* remove_oldest();

  const std::size_t capacity_;
  const when_full when_full_;
  const bool by_priority_;
  const tell tell_;
  std::mutex mutex_;
  std::array<std::deque<envelope*>, levels> mail_;
  std::deque<waiting> waiting_;
  std::vector<waiting> early_;  // until it opens
  std::size_t size_ = 0;
  std::uint64_t dropped_ = 0;
  bool told_ = true;  // a token is on the way: at first the one that opens it
  bool open_ = false;
  bool closed_ = false;
};

}  // namespace coppice::detail
