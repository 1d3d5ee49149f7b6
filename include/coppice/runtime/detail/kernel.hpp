#pragma once
/// The object behind a `runtime`: its functions for processes, schedulers and the libraries above this one. Users do
/// not call it. Its parts are implemented in files of their own: see src/runtime/README.md.
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <coppice/base/error.hpp>
#include <coppice/env/environment.hpp>
#include <coppice/runtime/detail/process_table.hpp>
#include <coppice/runtime/detail/turn.hpp>
#include <coppice/runtime/log.hpp>
#include <coppice/runtime/mailbox.hpp>
#include <coppice/runtime/observe.hpp>
#include <coppice/runtime/options.hpp>
#include <coppice/runtime/signals.hpp>
#include <coppice/runtime/transport.hpp>

namespace coppice::detail {

struct kernel_parts;
struct future_base;
class scheduler;
class event_stream;
class mailbox_policy;
class blocking_token;

/// A deferred reply: any process or thread may send it until the callee ends.
struct pending_reply {
  std::atomic<bool> answered{false};
  pid callee;
  pid caller;
  std::uint64_t call = 0;
  bool holds_failure = false;  // a failure of the callee is a result for the caller, and needs no report
  void (*fail)(kernel&, pending_reply&, const exit_reason&) = nullptr;
};

/// The properties of a new process, apart from its code.
struct birth {
  struct texts {
    std::string name{};
    std::string label{};
  };
  pid parent{};                              // nobody: spawned from outside
  bool linked = false;                       // to the parent
  bool parent_reports = false;               // the parent, to which it is linked, logs its failures
  monitor_ref watched_as{};                  // the monitor that the parent has on it
  std::uint64_t ack = 0;                     // not 0: the parent waits under this number until it is initialised
  std::unique_ptr<const texts> called{};     // null: it has neither a name nor a label
  std::shared_ptr<mailbox_policy> policy{};  // its mailbox policy; null: it has none
  /// Null when both are empty.
  [[nodiscard]] static std::unique_ptr<const texts> by(std::string name, std::string label) {
    if (name.empty() && label.empty()) return nullptr;
    return std::make_unique<const texts>(std::move(name), std::move(label));
  }
  [[nodiscard]] bool has_name() const noexcept { return called != nullptr && !called->name.empty(); }
  [[nodiscard]] bool has_label() const noexcept { return called != nullptr && !called->label.empty(); }
};

// The mailbox policies of new processes. Null: the mailbox has neither a limit nor priorities. These throw
// `std::invalid_argument` if its values make no sense.
[[nodiscard]] std::shared_ptr<mailbox_policy> make_policy_of_options(const coppice::mailbox& how);
/// `of_spec`: from a child spec, or null. It replaces the mailbox of the props.
[[nodiscard]] std::shared_ptr<mailbox_policy> make_policy_of_actor(const std::shared_ptr<mailbox_policy>& of_spec,
                                                                   const coppice::mailbox& of_props);
/// For a child spec. Never null: without a limit and priorities, it lifts the limit of an actor's props.
[[nodiscard]] std::shared_ptr<mailbox_policy> make_policy_of_spec(const coppice::mailbox& how);

/// Sent to the parent when a child that was spawned linked ends after one of the two has unlinked the other. An actor
/// handles it as the end of the child. A coroutine takes it only while it waits for the start or the end of this one
/// child; in all other cases it is dropped.
struct child_ended {
  pid who;
  exit_reason reason;
};

/// The first envelope of a process. Its type's `deliver` makes the body, in the new process; the name of the type is
/// that of the object's class, and empty for coroutines.
struct start_letter : envelope {
  birth with;
  start_letter(const message_type* t, birth&& b) : envelope{t}, with{std::move(b)} {}
};

/// Reports that may come in floods. Of those with the same subject and key the first few in a second are logged, then
/// only their number.
struct flood {
  std::string_view subject;  // the text of the record that gives their number
  std::size_t key = 0;
};

class kernel : public std::enable_shared_from_this<kernel> {
 public:
  /// Throws `std::invalid_argument`, `std::bad_alloc`.
  kernel(std::shared_ptr<environment> env, const runtime_options& options);
  ~kernel();
  kernel(const kernel&) = delete;
  kernel& operator=(const kernel&) = delete;

  [[nodiscard]] node_id node() const noexcept { return table_.node(); }
  [[nodiscard]] environment& env() noexcept { return *env_; }
  [[nodiscard]] const runtime_options& options() const noexcept { return options_; }
  [[nodiscard]] process_table& table() noexcept { return table_; }
  [[nodiscard]] const process_table& table() const noexcept { return table_; }
  [[nodiscard]] pid pid_of(const slot& p) const noexcept { return table_.pid_of(p); }
  [[nodiscard]] slot& slot_at(std::uint32_t index) noexcept { return table_[index]; }
  [[nodiscard]] bool alive(pid who) const noexcept { return table_.alive(who); }
  [[nodiscard]] bool gone(pid who) const noexcept { return table_.gone(who); }

  // -- mail. A function that takes an `envelope*` becomes its owner.
  void send(pid to, signal s, envelope* e) {
    e->tag = envelope::tag_of(to.serial(), s);
    if (!table_.on_fast_path(to)) [[unlikely]]
      return send_slowly(to, e);
    send_here(to, e);
  }
  /// To a slot of this table. The envelope has its tag.
  [[gnu::always_inline]] void send_here(pid to, envelope* e) {
    slot& p = table_[to.index()];
    // A signal to an ended process must not wait in the queue of the process that has the slot now and may be stuck.
    if (p.is_special(to.serial())) [[unlikely]] {
      if (p.is_past(to.serial())) return send_elsewhere(to, e);
      if (e->what() == signal::message && put_under_policy(to, e)) return;
    }
    turn* t = current_turn;
    if (t != nullptr && t->out.target == &p) [[unlikely]]
      return add_to_burst(*t, e);
    if (p.mail.push(e))
      schedule(p);
    else if (t != nullptr)
      note_busy(*t, p);
  }
  /// To a process with a fast lane: as `send`, and the receiver handles it before the mail in its queue.
  void send_fast(pid to, envelope* e);
  /// Sends an exit signal. If it ends the receiver, it does so before the receiver handles the mail in its queue.
  void send_exit(pid to, exited x);
  /// As `send`, for a thread that may outlive the runtime. False: the runtime has ended, and the envelope was dropped.
  bool send_late(pid to, signal s, envelope* e);
  /// Pushes the messages that the current handler has held back: before a signal that must not overtake them.
  void flush_burst() {
    if (turn* t = current_turn; t != nullptr && t->out.target != nullptr) [[unlikely]]
      t->k->flush_burst(*t);  // the kernel of the turn, which need not be this one
  }
  void flush_burst(turn& t);
  /// Logs, counts and publishes a dead letter. Does nothing for a request, because its caller gets an error.
  void note_dead_letter(pid to, const envelope& e);
  /// The same for a message that its receiver has no handler for. A request is only logged.
  void note_unhandled(pid to, const envelope& e);
  /// Registers a deferred reply: if `me` ends before the reply is sent, the kernel calls `reply->fail`.
  void defer(slot& me, const std::shared_ptr<pending_reply>& reply);

  // -- mailbox policies
  [[nodiscard]] std::shared_ptr<mailbox_policy> policy_of(pid who);
  /// Called when the process ends: returns the mail left in its policy and releases the senders that wait for room.
  [[nodiscard]] std::vector<envelope*> close_policy(pid who);
  /// Sends an actor the signal that its policy has mail.
  void push_actor_token(pid who);
  /// Puts a token for one message of its policy into the queue of another process.
  void push_mail_token(pid who);
  /// For a process that has a policy: how many messages it has put aside.
  void set_put_aside(pid who, std::size_t count);
  /// Drops mail that a full mailbox has no room for: it becomes a dead letter, or its caller gets an error.
  void turn_away(pid to, envelope* e);
  [[nodiscard]] bool has_fast_lane(pid who) const noexcept {
    return alive(who) && table_[who.index()].is(slot::has_fast_lane);
  }

  // -- trace ids and times, for a process that has the bit `has_trace_ids` or `is_measured`
  /// The running process receives a message that it has put aside before, or that its mailbox policy held.
  void note_receipt(slot& me, std::uint32_t serial, envelope& e);
  /// The running process puts the message aside that it was about to receive.
  void put_trace_id_aside(slot& me, std::uint32_t serial, envelope& e);
  /// The message that the running process handles is kept for later, in this new envelope.
  void keep_trace_id(envelope& e);
  /// Empty if this runtime has no trace ids.
  [[nodiscard]] trace_context begin_trace(slot& me, const trace_context& from);

  // -- starting and ending processes
  /// Takes the letter. Errors: `name_taken`, `stopped`, `capacity`.
  [[nodiscard]] result<pid> start(start_letter* first);
  /// Throws `std::bad_alloc` if the fault plan of a simulation says so.
  void before_spawn();
  /// The parent's half of the links and monitors that a spawn has made.
  void adopt(slot& me, pid mine, pid child, bool linked, monitor_ref watched_as);
  /// Ends an idle child at once, as an exit signal from its parent `me` would, and sends `me` no exit signal. False:
  /// nothing was done, because the child is not idle or not linked to `me`, or the signal would not end it.
  [[nodiscard]] bool end_idle(slot& me, pid child, const exit_reason& why);
  /// Ends a process that is stuck in its code, as `abandoned`. False: it is not in its code (any more), or not alive.
  bool abandon(pid who);

  // -- links and monitors, by the process itself
  void link(slot& me, pid other);
  void unlink(slot& me, pid other);
  [[nodiscard]] monitor_ref monitor(slot& me, pid other);
  /// A ref for a monitor that is set together with the spawn of the monitored process.
  [[nodiscard]] monitor_ref monitor_unborn(slot& me);
  bool demonitor(slot& me, monitor_ref ref);
  /// Whether the exit is a signal from the parent. Such an exit ends a server even if the server traps exits.
  [[nodiscard]] bool is_stop_from_parent(const slot& p, const exited& x) const noexcept {
    return x.signalled && table_.is_parent(p, x.from);
  }
  /// Whether `me` is certain to be notified of the end of `child`: by its exit, or by `child_ended`.
  [[nodiscard]] bool end_will_be_known(const slot& me, pid child) const noexcept;

  // -- names and labels
  [[nodiscard]] result<void> register_name(std::string_view name, pid who);
  bool unregister_name(std::string_view name);
  [[nodiscard]] pid where(std::string_view name);
  /// Empty: it has none.
  [[nodiscard]] std::string name_of(pid who);
  [[nodiscard]] std::string label_of(pid who);
  void set_label(slot& me, std::string label);

  // -- time
  [[nodiscard]] time_point now() noexcept { return env_->clock().now(); }
  /// `delay` from now, or `time_point::max()` if that is out of range.
  [[nodiscard]] time_point time_after(std::chrono::nanoseconds delay) noexcept {
    std::chrono::nanoseconds::rep sum = 0;
    const bool beyond = __builtin_add_overflow(now().time_since_epoch().count(), delay.count(), &sum);
    return beyond ? time_point::max() : time_point{std::chrono::nanoseconds{sum}};
  }
  /// Hundredths of a second since the runtime started.
  [[nodiscard]] std::uint32_t centiseconds(time_point at) const noexcept;
  /// Takes the envelope, and sends it at `due`.
  [[nodiscard]] timer_ref arm(time_point due, pid to, signal s, envelope* e);
  /// True: the envelope will never be sent. False: it was sent or disarmed before.
  bool disarm(timer_ref ref);
  [[nodiscard]] std::optional<std::chrono::nanoseconds> remaining(timer_ref ref);
  [[nodiscard]] timer_ref start_timer(slot& me, std::chrono::nanoseconds after);
  /// For a timer of `me`: also makes sure that a `timer_fired` already in the queue is never received.
  bool cancel_timer(slot& me, timer_ref ref);

  // -- futures of processes that are not actors
  /// Gives the future its number. Its answer is a reply with that number.
  void add_future(slot& me, const std::shared_ptr<future_base>& f);
  void remove_future(slot& me, std::uint64_t number);

  // -- work on threads for blocking calls
  /// `what` names the work, in case it never returns; it must live as long as the program.
  void submit_blocking(std::move_only_function<void()> job, std::string_view what);
  /// For blocking work of the running process that something else runs, such as a lane.
  [[nodiscard]] std::shared_ptr<blocking_token> track_blocking(std::string_view what);

  // -- freezing
  struct freeze_target {
    pid root;
    bool subtree = false;  // with all processes spawned linked by it or below it, also later ones
    friend bool operator==(const freeze_target&, const freeze_target&) = default;
  };
  /// Freezes the target and returns the number of this freeze. The process `informs` receives `freeze_done` with that
  /// number once no frozen process has a turn or blocking work running, or when the target is thawed before that.
  [[nodiscard]] result<std::uint64_t> freeze(freeze_target who, pid informs);
  /// Ends the wait: `freeze_done` is not sent any more. Returns the frozen processes that are still in their code or
  /// have blocking work running. Error: the freeze is not in force any more.
  [[nodiscard]] result<std::vector<pid>> stop_waiting_for_freeze(freeze_target who, std::uint64_t frozen_as);
  /// Undoes one freeze of the same target. False: there is none.
  bool thaw(freeze_target who);
  /// Whether a freeze of the process is in force now.
  [[nodiscard]] bool is_frozen(pid who) const noexcept;

  // -- other nodes
  void set_transport(std::shared_ptr<transport> t);
  void deliver(connection_number over, parcel p);
  void node_lost(node_id node, connection_number lost);
  /// Registers a call to another node: if the connection is lost, the kernel calls `fail`.
  void await_remote_reply(pid caller, std::uint64_t call, pid callee, void (*fail)(kernel&, pid, std::uint64_t, error));
  void remote_reply_over(pid caller, std::uint64_t call, pid callee);

  // -- observation
  [[nodiscard]] std::vector<process_info> snapshot();
  [[nodiscard]] std::string why(pid who);
  [[nodiscard]] std::vector<std::vector<pid>> call_cycles();
  /// Measures the times of the handlers of a process from now on, or no longer. False: it is not alive.
  bool measure(pid who, bool on);
  [[nodiscard]] std::optional<process_info> info(pid who);
  [[nodiscard]] runtime_counters counters();
  [[nodiscard]] event_stream& events() noexcept;
  [[nodiscard]] bool logs(log_level level, log_part part = log_parts::runtime) const noexcept {
    return level >= logged_from_ && level >= level_of(part) && level != log_level::off;
  }
  void log(log_level level, std::string_view text, std::initializer_list<log_field> fields = {}) {
    log(log_parts::runtime, level, text, fields);
  }
  void log(log_part part, log_level level, std::string_view text, std::initializer_list<log_field> fields = {}) {
    log(part, level, text, std::span<const log_field>{fields.begin(), fields.size()});
  }
  void log(log_part part, log_level level, std::string_view text, std::span<const log_field> fields);
  void log_throttled(const flood& about, log_part part, log_level level, std::string_view text,
                     std::span<const log_field> fields);

  // -- for schedulers
  [[nodiscard]] scheduler& sched() noexcept { return *scheduler_; }
  /// For an environment without threads; must be called before anything is spawned.
  void set_scheduler(std::unique_ptr<scheduler> s);
  /// Handles up to `budget` signals of a process that the caller owns. True: it has more and must be scheduled again.
  [[nodiscard]] bool run(slot& p, int budget, turn& t);
  /// Hands a process that the caller owns to the scheduler.
  void schedule(slot& p, bool spawned = false);
  /// For an environment without threads: sends what is due now. `next_timer` says when to call it again.
  void fire_timers();
  [[nodiscard]] std::optional<time_point> next_timer();
  void flush_from_outside(turn& t);
  void report_stall(slot& p, std::chrono::milliseconds lasting);
  /// The thread that was stuck in an abandoned process has come back: frees the body and the slot, and the envelope `e`
  /// unless it is `kept`.
  void bury(slot& p, envelope* e, bool kept);
  /// Whether `e`, which is in the queue of `p`, is a message, even if it carries the mark of the fast lane.
  [[nodiscard]] static bool is_message(const slot& p, const envelope& e) noexcept;

  // -- the end of the runtime
  /// Kills every process and waits until all have ended, at most for `runtime_options::stop_within`.
  /// False: threads are stuck in processes, and this object must outlive them.
  [[nodiscard]] bool stop();
  void report_left_behind();
  /// Destroys everything and notifies nobody, as a power cut would. Nothing may be running.
  void crash();
  [[nodiscard]] bool crashed() const noexcept { return crashed_.load(std::memory_order_relaxed); }
  void note_crash() noexcept { crashed_ = true; }

  /// For this library alone; `kernel_parts` is in src/runtime/internal/kernel_parts.hpp.
  [[nodiscard]] kernel_parts& parts() noexcept { return *parts_; }

 private:
  [[nodiscard]] log_level level_of(log_part part) const noexcept;
  void send_slowly(pid to, envelope* e);
  [[gnu::noinline]] result<pid> start_slowly(start_letter* first);
  void send_elsewhere(pid to, envelope* e);
  [[nodiscard]] bool put_under_policy(pid to, envelope* e);
  void note_busy(turn& t, slot& p) noexcept {
    burst& b = t.out;
    ++b.met_busy;
    if (b.busy != &p) {
      b.busy = &p;
      b.in_a_row = 0;
    } else if (++b.in_a_row >= burst::begins_after && t.p != nullptr && t.k == this && !b.closed.load()) {
      open_burst(t, p);
    }
  }
  void open_burst(turn& t, slot& p);
  void add_to_burst(turn& t, envelope* e);
  void push_burst(burst& b);

  std::shared_ptr<environment> env_;
  runtime_options options_;
  process_table table_;
  std::unique_ptr<kernel_parts> parts_;
  std::unique_ptr<scheduler> scheduler_;
  const log_level logged_from_;  // the lowest level of any part
  std::atomic<bool> crashed_{false};
  friend class debugger_entry;
  kernel* next_kernel_ = nullptr;  // in `all_kernels`
};

/// The first of a list of all runtimes in the program, for debuggers: see tools/gdb.
extern kernel* all_kernels;

}  // namespace coppice::detail
