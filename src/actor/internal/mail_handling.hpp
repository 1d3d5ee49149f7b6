#pragma once
#include "duty.hpp"

namespace coppice::detail {

/// Receives mail: hands it to the handlers, or puts it aside while the actor takes none.
class mail_handling : public duty {
 public:
  using duty::duty;
  [[nodiscard]] verdict receive(envelope& e);
  /// Handles the mail that was put aside, in a turn of its own, before what is in the queue.
  void continue_with_mail();
  void replay();
  /// A limited mailbox has mail.
  void receive_under_policy();
  void check_receive_timeout(receive_check check);
  /// The oldest of the stash are received next.
  void unstash(std::size_t how_many);
  /// An envelope that this actor made itself, for later.
  void put_aside(envelope* e);

 private:
  void receive_outside_of_queue(envelope& e);
  /// Messages about the actor and about other processes. False: it is mail for the handlers. `kept`: it has to wait,
  /// and the caller puts it aside.
  [[nodiscard]] bool receive_system_message(envelope& e, verdict& v);
};

/// Whether the process was abandoned while user code ran. Then nothing else of it may happen.
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
