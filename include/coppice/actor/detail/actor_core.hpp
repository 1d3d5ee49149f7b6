#pragma once
/// An actor of any class, as the sum of its parts. Each part has a header of its own; the functions that work on
/// several parts are classes in src/actor/internal, one for each duty. See src/actor/README.md.
#include <deque>

#include <coppice/actor/behaviour.hpp>
#include <coppice/actor/detail/actor_settings.hpp>
#include <coppice/actor/detail/aside_mail.hpp>
#include <coppice/actor/detail/child_failed.hpp>
#include <coppice/actor/detail/child_table.hpp>
#include <coppice/actor/detail/instance_holder.hpp>
#include <coppice/actor/detail/instance_timers.hpp>
#include <coppice/actor/detail/life_status.hpp>
#include <coppice/actor/detail/pending_futures.hpp>
#include <coppice/actor/detail/room_waits.hpp>
#include <coppice/actor/detail/watch_list.hpp>
#include <coppice/actor/life_messages.hpp>

namespace coppice::detail {

/// The message of `context::poison`: the actor stops when it takes this message from its mailbox.
struct poison_pill {
  static constexpr int priority = 0;
};
consteval message_type poison_type() {
  message_type type = plain_type<poison_pill>();
  type.mailbox.never_dropped = true;
  return type;
}
template <>
inline constexpr message_type plain<poison_pill> = poison_type();

/// `terminated` has the lowest priority: in a mailbox with priorities it comes after all mail of the ended process.
template <>
inline constexpr message_type plain<terminated>{
    .name = type_name<terminated>(),
    .size = sizeof(letter<terminated>),
    .drop = &drop_body<terminated>,
    .relocate = &relocate_body<terminated>,
    .mail = {.open = &open_body<terminated>},
    .mailbox = {.priority = [](const envelope&) { return 0; }, .never_dropped = true}};

/// The handlers that have replaced those of the class. Changed by `actor_core::change_behaviours` only.
struct behaviour_stack {
  std::vector<behaviour> all;
  std::size_t permanent = 0;  // at the bottom; `unbecome` does not remove them
};

/// The message whose handler has failed, until the failure is answered. Its call was answered with the failure, so the
/// number of the call is not kept.
struct failed_message {
  pid sender{};  // nobody: not known
  bool called = false;
};

/// Parts that few actors need. Allocated on first use.
struct rare_parts {
  child_table children;
  std::optional<time_point> children_end_by;  // as reported to the parent while this actor stops; empty: not reported
  std::vector<signals::child_failed> undecided;  // failures that arrived while this actor could not decide
  child_record own;                              // of a top-level actor, for its guardian
  failed_message failed_on;
  watch_list watches;
  behaviour_stack behaviours;
  std::deque<envelope*> stash;
  instance_timers timers;
  receive_timeout_check receive_timeout;
  pending_futures futures;
  room_waits room;
  std::shared_ptr<coppice::detail::mailbox_policy> policy;  // null: the mailbox has neither a limit nor priorities
  bool mail_token_parked = false;  // the `mail_token` of the mailbox policy arrived while the actor took no mail
};

/// Who decides when the actor fails.
enum class decided_by : std::uint8_t {
  guardian,    ///< a top-level actor
  parent,      ///< its parent is an actor
  supervisor,  ///< its parent is a supervisor: without a guardian of its own, a failure ends it
};

/// What the start of an actor needs in addition to `birth`.
struct actor_birth {
  decided_by failures = decided_by::guardian;
  std::uint32_t suspended = 0;
};

struct actor_core : life_status {
  actor_core(const actor_class& c, std::shared_ptr<const actor_settings> s, actor_birth how) noexcept;

  // -- called by the kernel
  static verdict offer(body& b, turn& t, envelope& e);
  static void destroy(body& b, kernel& k) noexcept;
  static std::uint32_t held(const body& b) noexcept;
  static envelope* in_hand(const body& b) noexcept;
  static void describe(const body& b, kernel& k, process_info& into);
  static void tell_of_room(kernel& k, pid sender, pid receiver, bool waits);

  // -- called when a handler has thrown, inside of the catch block
  void handler_threw(turn& t, mail_origin& origin, const std::exception& x);
  void handler_threw(turn& t, mail_origin& origin, exit_reason why);
  void handler_threw_exit_with(turn& t, mail_origin& origin, const exit_reason& why);
  /// Ends the process, with the text of the `ensure` as its reason. A restart would keep the broken state.
  void end_broken(turn& t, mail_origin& origin, const broken_invariant& found);

  /// Remembers the sender of the message whose handler has failed, for `restarting`, `stopping` and `stopped`.
  void set_failed_on(failed_message what) {
    if (what.sender || rare) parts().failed_on = what;
  }

  [[nodiscard]] rare_parts& parts() {
    if (!rare) rare = std::make_unique<rare_parts>();
    return *rare;
  }
  [[nodiscard]] bool has_children() const noexcept { return rare && !rare->children.empty(); }
  [[nodiscard]] child_record* find_child(pid who) noexcept { return rare ? rare->children.find(who) : nullptr; }
  [[nodiscard]] bool has_behaviours() const noexcept { return rare && !rare->behaviours.all.empty(); }
  template <class F>
  void change_behaviours(F change) {
    change(parts().behaviours);
    set_slow_path(slow_path::behaviours, has_behaviours());
  }
  void set_receive_timeout(kernel& k, std::chrono::nanoseconds after) {
    parts().receive_timeout.set(k, id(), after);
    set_slow_path(slow_path::receive_timeout, after != no_timeout);
  }
  /// Whether a message may be handled now. While older mail is aside, only that mail may be.
  [[nodiscard]] bool next_in_turn() const noexcept { return takes_mail() && (aside.replaying || aside.empty()); }
  [[nodiscard]] std::uint64_t next_number() noexcept { return ++numbers; }

  std::shared_ptr<const actor_settings> settings;
  std::unique_ptr<rare_parts> rare;
  aside_mail aside;
  instance_holder instance;
  pid parent{};
  pid escalated_child{};  // the child whose failure became this actor's own; nobody: it failed itself
  exit_reason stop_reason{};
  start_ack ack{};
  std::atomic<envelope*> mail_in_hand{nullptr};  // the message being handled, if it did not come from the queue
  std::uint64_t instance_number = 0;             // as the parent counts
  std::uint64_t numbers = 0;
  decided_by failures;
  bool initialised = false;
};

/// Asks an actor to stop, before the mail that it has.
void send_stop(kernel& k, pid who);

/// Calls `run` as a handler of the actor: an exception is a failure of the actor, `exit_with` a stop, and a broken
/// invariant of this library the end of its process.
template <class F>
[[gnu::always_inline]] inline void call_guarded(actor_core& me, turn& t, mail_origin& origin, F&& run) {
  try {
    std::forward<F>(run)();
  } catch (const exit_with& x) {
    me.handler_threw_exit_with(t, origin, x.reason());
  } catch (const std::exception& x) {  // one clause for a broken invariant too: each clause costs the unwinder a search
    me.handler_threw(t, origin, x);
  } catch (...) {
    me.handler_threw(t, origin, reason_of_failure(t));
  }
}

}  // namespace coppice::detail
