#pragma once
/// What all actors have in common, whatever their class: their life, their children, and what they remember between two
/// messages. The states and the counting of suspensions are explained in docs/decisions/0020.
#include <functional>
#include <map>
#include <unordered_map>

#include <coppice/actor/behaviour.hpp>
#include <coppice/actor/lifecycle.hpp>
#include <coppice/actor/mailbox.hpp>
#include <coppice/actor/strategy.hpp>
#include <coppice/runtime/object.hpp>
#include <coppice/spec/child_info.hpp>

namespace coppice {

/// A message as middleware sees it.
class message_view {
 public:
  message_view(const detail::message_type& type, const void* content) noexcept : type_{&type}, content_{content} {}
  /// The C++ type, for reports.
  [[nodiscard]] std::string_view type() const noexcept { return type_->name; }
  /// The message when it is an `M`, else null.
  template <class M>
  [[nodiscard]] const M* get_if() const noexcept {
    return type_ == &detail::plain<M> ? static_cast<const M*>(content_) : nullptr;
  }

 private:
  const detail::message_type* type_;
  const void* content_;
};

/// Around each message that an actor handles, those of its life included: call `next` to go on. The first in the list
/// is the outermost. What it throws is a failure of the actor. Continuations are not messages.
using receive_middleware = std::function<void(context&, const message_view&, const std::function<void()>& next)>;
/// Around each `send`, `request`, `request_future`, `respond` and `forward` of an actor.
using send_middleware = std::function<void(context&, pid to, const message_view&, const std::function<void()>& next)>;

namespace detail {

class actor_core;
struct future_base;

/// All that `props` say, apart from the class.
struct actor_settings {
  std::function<void(void* where, context&)> make{};
  actor_strategy strategy{};
  std::optional<actor_strategy> guardian{};
  coppice::mailbox mailbox{};
  std::vector<receive_middleware> on_receive{};
  std::vector<send_middleware> on_send{};
  std::vector<std::function<void(context&)>> on_init{};
  bool keep_children = false;
};

/// What the core has to know of a class. Mail that carries its handler finds it by `plain`; while an actor is anything
/// but plainly running, its type is `rare`, and all its mail comes through `offer`.
struct actor_class {
  body_type plain{};
  body_type rare{};
  void (*make)(actor_core&, context&) = nullptr;
  void (*unmake)(actor_core&) noexcept = nullptr;
  void (*free)(actor_core&) noexcept = nullptr;
  /// By the type of the message; false: it has no handler.
  bool (*dispatch)(actor_core&, context&, const message_type& type, void* message) = nullptr;
  /// Its handler for the rest; null: it has none.
  void (*rest)(actor_core&, context&, any_message&&) = nullptr;
  /// Its own decider; null: it has none.
  directive (*decide)(actor_core&, context&, const child_failure&) = nullptr;
};

/// From one actor to another, or to itself, ahead of its mail.
struct actor_order {
  enum class kind : std::uint8_t {
    failed,       // to the parent: `from` has failed
    suspend,      // to a child
    resume,       // to a child; marked: its own failure is answered
    restart,      // to a child; marked: it was suspended for it
    stop,         // to anybody
    stop_child,   // to oneself: the child of that place, a process
    restart_due,  // to oneself: the wait of the child `from` is over; marked: all children
    kill_due,     // to oneself: the child `from` has not ended in time
    future_due,   // to oneself: the time of a future is over
    hold,         // to oneself: `from` has no room for what was sent to it
    let_go,       // it has
    hold_due,     // to oneself: it did not have it in time
    hold_over,    // to oneself: what it said before that has been heard
  };
  kind what;
  pid from{};
  std::uint64_t number = 0;  // of the child's instance, of its place, or of the future
  bool marked = false;
  exit_reason reason{};
  std::exception_ptr thrown{};
};
/// Stops an actor when it is reached in its mailbox.
struct poison_pill {
  static constexpr int priority = 0;
};
/// A future is done, and its actor was suspended then.
struct continuation_ready {
  std::shared_ptr<future_base> future;
};
struct receive_check {
  std::uint64_t number;
};
/// There is mail that was put aside, and now is the time for it.
struct replay_order {};
consteval message_type poison_type() {
  message_type type = plain_type<poison_pill>();
  type.never_dropped = true;
  return type;
}
template <>
inline constexpr message_type plain<poison_pill> = poison_type();

/// Where mail waits at a gate, it waits there behind all that the one who has ended had sent.
template <>
inline constexpr message_type plain<terminated>{.name = type_name<terminated>(),
                                                .size = sizeof(letter<terminated>),
                                                .drop = &drop_body<terminated>,
                                                .relocate = &relocate_body<terminated>,
                                                .open = &open_body<terminated>,
                                                .priority = [](const envelope&) { return 0; },
                                                .never_dropped = true};

/// A child as its parent knows it.
struct child_record {
  pid who{};
  std::string name{};
  std::uint64_t place = 0;                   // in the order of their spawns
  std::shared_ptr<const child_spec> spec{};  // null: it is an actor
  std::uint64_t instance = 0;                // what it failed with an older number was answered
  bool failed = false;                       // not answered, or waiting for its restart
  bool hollow = false;                       // it failed before it had an instance
  pid held_for{};                            // suspended for a restart of all, which is that one's
  bool stops = false;
  bool again = false;  // a process: started again once it has ended
  restart_window window{};
  unsigned in_a_row = 0;
  time_point since{};
  std::uint64_t restarts = 0;
  std::optional<exit_reason> last{};
  timer_ref due{};
};

/// Somebody has no room for so many of our messages.
struct hold {
  unsigned messages = 0;
  std::uint64_t number = 0;
  timer_ref due{};
  bool over = false;  // it has waited for too long: what that one has said until then no longer counts
};
struct watched {
  monitor_ref ref;
  bool over = false;  // its `terminated` is in the mailbox
};
struct timer_entry {
  timer_ref armed;
  time_point due{};
  std::chrono::nanoseconds period{0};
  std::function<envelope*()> again{};
};
/// What only some actors have. Exists once it is used.
struct actor_parts {
  std::map<pid, child_record> children;
  std::uint64_t places = 0;
  std::unordered_map<pid, watched> watching;
  std::vector<behaviour> behaviours;
  std::size_t first_behaviours = 0;  // that `unbecome` leaves: those of an actor without a class
  std::deque<envelope*> stash;
  std::unordered_map<std::uint64_t, timer_entry> timers;
  std::unordered_map<std::uint64_t, std::shared_ptr<future_base>> futures;
  std::vector<std::shared_ptr<future_base>> done_too_late;               // while it stops
  std::unordered_map<std::uint64_t, std::shared_ptr<future_base>> ends;  // by monitor: who waits for an end
  std::vector<actor_order> deferred;  // failures of children that come at the wrong time
  std::unordered_map<pid, hold> holds;
  std::shared_ptr<coppice::detail::gate> gate;
  child_record own;  // of a top-level actor, for its guardian
  std::chrono::nanoseconds receive_timeout = no_timeout;
  time_point last_received{};
  std::uint64_t receive_checks = 0;
  timer_ref receive_timer{};
  bool token_parked = false;
};

/// Mail put aside, in its order.
class mail_chain {
 public:
  void add(envelope* e) noexcept {
    (last_ != nullptr ? last_->next.store(e, std::memory_order_relaxed) : void(first_ = e));
    last_ = e;
    ++size_;
  }
  void add_first(envelope* e) noexcept {
    e->next.store(first_, std::memory_order_relaxed);
    if (first_ == nullptr) last_ = e;
    first_ = e;
    ++size_;
  }
  [[nodiscard]] envelope* take() noexcept {
    envelope* e = first_;
    if (e == nullptr) return nullptr;
    first_ = e == last_ ? nullptr : e->next.load(std::memory_order_relaxed);
    if (first_ == nullptr) last_ = nullptr;
    --size_;
    return e;
  }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

 private:
  envelope* first_ = nullptr;
  envelope* last_ = nullptr;
  std::uint32_t size_ = 0;
};

/// How an actor begins, beside what every process has.
struct actor_birth {
  bool of_actor = false;    // its parent is an actor, who supervises it
  bool supervised = false;  // by a supervisor: what it does not answer itself ends it
  std::uint32_t suspended = 0;
};

class actor_core : public body {
 public:
  actor_core(const actor_class& c, std::shared_ptr<const actor_settings> s, actor_birth how) noexcept;
  actor_core(const actor_core&) = delete;
  actor_core& operator=(const actor_core&) = delete;

  static verdict offer(body& b, turn& t, envelope& e);
  static void destroy(body& b, kernel& k) noexcept;
  static std::uint32_t held(const body& b) noexcept;
  static envelope* in_hand(const body& b) noexcept;

  // -- for handlers, in a handler of exceptions
  void failed(turn& t, mail_origin& origin, exit_reason why);
  /// It threw `exit_with`.
  void stops_itself(turn& t, mail_origin& origin, exit_reason why);

  // -- for the context
  [[nodiscard]] const actor_settings& settings() const noexcept { return *settings_; }
  [[nodiscard]] pid id() const noexcept { return me_; }
  [[nodiscard]] actor_parts& parts() {
    if (!parts_) parts_ = std::make_unique<actor_parts>();
    return *parts_;
  }
  [[nodiscard]] actor_parts* parts_if_any() const noexcept { return parts_.get(); }
  [[nodiscard]] std::vector<child_record*> children_in_order();
  /// Throws `spawn_failed` when this is no time for it.
  void before_spawn() const;
  [[nodiscard]] std::uint32_t suspended() const noexcept { return suspended_; }
  [[nodiscard]] bool has_failed() const noexcept { return failed_; }
  void add_child(turn& t, pid who, std::string name, std::shared_ptr<const child_spec> spec);
  [[nodiscard]] result<pid> start_process(turn& t, const child_spec& spec);
  void stop(turn& t, pid who, exit_reason reason);
  /// `perpetrator`: the child whose failure it is.
  void fail(turn& t, exit_reason why, std::exception_ptr thrown, pid perpetrator = {});
  void watch(self& me, pid who);
  void unwatch(self& me, pid who);
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
  [[nodiscard]] std::uint64_t next_number() noexcept { return ++numbers_; }
  void expect(turn& t, std::shared_ptr<future_base> f, std::chrono::nanoseconds timeout);
  void expect_end(self& me, turn& t, pid who, const std::shared_ptr<future_base>& f, std::chrono::nanoseconds timeout);
  void unstash(turn& t, std::size_t how_many);
  void set_receive_timeout(turn& t, std::chrono::nanoseconds after);
  bool cancel_timer(kernel& k, std::uint64_t id);
  /// Whether mail may be handed over without a closer look.
  void settle() noexcept;

 private:
  enum class phase : std::uint8_t { starting, running, restarting, stopping, ended };

  [[nodiscard]] bool takes_mail() const noexcept { return phase_ == phase::running && suspended_ == 0 && holds_ == 0; }
  /// Whether what comes now is next: not while older mail waits.
  [[nodiscard]] bool in_turn() const noexcept { return takes_mail() && (replays_ || kept_.size() == 0); }
  [[nodiscard]] bool decides() const noexcept { return phase_ == phase::running && suspended_ == 0; }

  // its life: life.cpp
  void begin(turn& t, const start_letter& first);
  void create(turn& t);
  void initialise(context& me);
  void begin_restart(turn& t, const exit_reason& cause);
  void complete_restart(turn& t);
  void begin_stop(turn& t, exit_reason reason, bool drain);
  void finish_stop(turn& t);
  void go_on(turn& t);
  void end_instance(turn& t);
  void drop_continuations();
  void go_on_with_mail(turn& t);
  void replay(turn& t);
  template <class E>
  void hear(turn& t, E event);
  template <class E>
  void hear_quietly(turn& t, E event);
  void log_failure(turn& t, std::string_view where);

  // its mail: mail.cpp
  [[nodiscard]] verdict take_signal(turn& t, envelope& e);
  [[nodiscard]] verdict take_message(turn& t, envelope& e);
  [[nodiscard]] bool take_own(turn& t, envelope& e, verdict& v);
  [[nodiscard]] verdict keep(envelope& e);
  void keep_letter(turn& t, envelope* e);
  void hand_over(turn& t, envelope& e);
  void run_letter(turn& t, envelope& e);
  /// True: `whole` was given away.
  bool run_message(turn& t, mail_origin& origin, const message_type& type, void* message, envelope* whole);
  [[nodiscard]] bool give_rest(context& me, envelope& whole, bool& given);
  template <class F>
  void through_middleware(context& me, const message_type& type, void* message, const F& inner);
  void run_middleware(context& me, const message_type& type, void* message, const std::function<void()>& inner);
  [[nodiscard]] bool dispatch(context& me, const message_type& type, void* message, bool of_life);
  void take_down(turn& t, envelope& e);
  void take_reply(turn& t, envelope& e);
  void take_token(turn& t);
  void take_from_hand(turn& t, envelope& e);
  void take_terminated(turn& t, envelope& e);
  void check_receive_timeout(turn& t, receive_check check);
  void arm_receive_check(turn& t, std::chrono::nanoseconds after);
  void touch(turn& t, const message_type& type);
  [[nodiscard]] bool timer_is_over(turn& t, mail_origin& origin);
  void future_due(turn& t, const actor_order& o);
  void run_continuations(turn& t, const std::shared_ptr<future_base>& f);
  void answer_children(turn& t, envelope& e);

  // those it supervises: children.cpp
  void take_order(turn& t, actor_order o);
  void child_failed(turn& t, actor_order o);
  void judge_child(turn& t, child_record& c, const actor_order& o);
  void revive(turn& t, child_record& c);
  void judge_self(turn& t, const exit_reason& why, const std::exception_ptr& thrown);
  [[nodiscard]] judgement judge(turn& t, const actor_strategy& by, child_record& c, const actor_order& o,
                                bool own_word);
  [[nodiscard]] static std::chrono::nanoseconds wait_before(turn& t, child_record& c, const strategy_options& options);
  void announce(turn& t, const child_record& c, const exit_reason& why, const judgement& j);
  void apply(turn& t, child_record& c, const judgement& j, const actor_order& o);
  void restart_later(turn& t, child_record& c, const judgement& j, const exit_reason& cause);
  void restart_now(turn& t, child_record& c, bool all, const exit_reason& cause);
  void restart_one(turn& t, child_record& c, const exit_reason& cause);
  void restart_due(turn& t, const actor_order& o);
  void restart_held(turn& t, pid gone, const exit_reason& cause);
  void stop_child(turn& t, child_record& c, const exit_reason& reason, bool drain);
  void stop_children(turn& t, const exit_reason& reason, bool drain);
  void take_exited(turn& t, envelope& e, verdict& v);
  void child_gone(turn& t, pid who, const exit_reason& reason);
  void forget_child(turn& t, pid who);
  void restart_process(turn& t, child_record& c);
  [[nodiscard]] result<pid> spawn_process(turn& t, const child_spec& spec);
  [[nodiscard]] directive ask_instance(turn& t, const child_failure& f);
  void tell_children(turn& t, actor_order::kind what, pid except);
  void on_suspend(turn& t);
  void on_resume(turn& t, const actor_order& o);
  void on_restart(turn& t, const actor_order& o);
  [[nodiscard]] child_record* find_child(pid who) noexcept;

  // room at others: mail.cpp
  void on_hold(turn& t, const actor_order& o);
  void on_let_go(turn& t, const actor_order& o);
  void on_hold_due(turn& t, const actor_order& o);

  const actor_class* class_;
  std::shared_ptr<const actor_settings> settings_;
  std::unique_ptr<actor_parts> parts_;
  mail_chain kept_;
  pid me_{};
  pid parent_{};
  pid perpetrator_{};  // the child whose failure was escalated
  exit_reason ending_{};
  start_ack ack_{};
  std::atomic<envelope*> in_hand_{nullptr};  // what it handles, when that is not the head of its queue
  std::uint64_t instance_ = 0;               // as the parent counts
  std::uint64_t generation_ = 0;             // of instances
  std::uint64_t numbers_ = 0;
  std::uint32_t suspended_ = 0;
  std::uint32_t extra_ = 0;  // suspensions that end with the restart under way
  std::uint32_t holds_ = 0;
  phase phase_ = phase::starting;
  bool of_actor_;    // its parent is an actor, who supervises it
  bool supervised_;  // by a supervisor
  bool made_ = false;
  bool initialised_ = false;
  bool failed_ = false;
  bool drains_ = false;
  bool replays_ = false;      // it handles mail that was put aside
  bool will_replay_ = false;  // it has told itself to
};

/// Null: its mailbox has neither a limit nor priorities.
[[nodiscard]] std::shared_ptr<gate> make_gate(const actor_settings& s);
/// Sends `o` ahead of the mail of `to`.
void send_order(kernel& k, pid to, actor_order o);
/// The same to oneself, after a while.
[[nodiscard]] timer_ref arm_order(kernel& k, pid me, std::chrono::nanoseconds after, actor_order o);

}  // namespace detail
}  // namespace coppice
