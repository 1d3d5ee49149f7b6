#pragma once
/// Running a process: signal after signal, as long as its budget lasts.
#include "fast_lane.hpp"

namespace coppice::detail {

class freezer;
class lifecycle;
class observer;
struct kernel_parts;

/// Thread safety: for the owner of the slot, on a thread with a `turn`.
class process_runner {
 public:
  process_runner(kernel& k, kernel_parts& parts) noexcept;

  /// True: it has more signals and must be scheduled again. False: it is idle, has ended, or is frozen.
  [[nodiscard]] bool run(slot& p, int budget, turn& t);
  /// Hands a signal to the body as a message.
  [[nodiscard]] verdict offer_as_message(slot& p, envelope& e, turn& t);
  [[nodiscard]] verdict drop(envelope& e) {
    if ((e.tag & envelope::has_trace) != 0) [[unlikely]]
      forget_trace(kernel_, e);
    e.type->drop(kernel_, e, {});
    return verdict::alive;
  }

 private:
  enum class ahead : std::uint8_t { goes_on, ends, frozen };
  [[nodiscard]] verdict offer(slot& p, envelope& e, turn& t);
  [[nodiscard]] verdict handle_rare(slot& p, envelope& e, turn& t);
  [[nodiscard]] verdict handle_observed(slot& p, envelope& e, turn& t);
  /// Offers the next message of the mailbox policy, in the place of its token.
  [[nodiscard, gnu::noinline]] verdict receive_under_policy(slot& p, envelope& token, turn& t);
  [[nodiscard]] verdict begin(slot& p, start_letter& first, turn& t);
  [[nodiscard]] ahead look_ahead(slot& p, envelope* from, turn& t);
  [[nodiscard, gnu::noinline]] ahead look_while_frozen(slot& p, envelope* from, turn& t);
  void bounce_mail_of_others(slot& p, envelope* from);
  /// Ends a turn that was interrupted. True: the process must be scheduled again.
  [[nodiscard]] bool leave(slot& p, envelope* e, verdict v, turn& t);
  void end_unborn(slot& p, envelope& first, const turn& t);
  void terminate(body& b, turn& t);
  void end(slot& p, turn& t, envelope* rest);

  kernel& kernel_;
  process_table& table_;
  kernel_parts& parts_;
};

}  // namespace coppice::detail
