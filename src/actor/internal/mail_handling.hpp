#pragma once
#include "duty.hpp"

namespace coppice::detail {

/// Receives mail: hands it to the handlers, or puts it aside while the actor takes none.
class mail_handling : public duty {
 public:
  using duty::duty;
  [[nodiscard]] verdict receive(envelope& e);
  /// Schedules the mail that was put aside, which is handled before the mail in the queue.
  void continue_with_mail();
  void replay();
  /// Takes one message from a mailbox with a limit or with priorities.
  void receive_under_policy();
  void check_receive_timeout(receive_check check);
  /// The oldest messages of the stash are received next.
  void unstash(std::size_t how_many);
  /// Puts aside an envelope that this actor has made itself.
  void put_aside(envelope* e);

 private:
  void receive_outside_of_queue(envelope& e);
  /// Receives messages about the actor and about other processes. False: it is mail for the handlers. `v` is `kept`:
  /// the message has to wait, and the caller puts it aside.
  [[nodiscard]] bool receive_system_message(envelope& e, verdict& v);
};

/// Whether the process was abandoned while user code ran. Then the actor must do nothing more.
[[nodiscard]] bool was_abandoned(const turn& t);

/// Publishes the envelope being handled: a thread that abandons the actor has to answer the calls in it.
class message_in_hand {
 public:
  message_in_hand(std::atomic<envelope*>& hand, const turn& t, envelope& mail) noexcept;
  ~message_in_hand();
  message_in_hand(const message_in_hand&) = delete;
  message_in_hand& operator=(const message_in_hand&) = delete;

 private:
  std::atomic<envelope*>& hand_;
  const turn& t_;
  envelope* before_;
};

}  // namespace coppice::detail
