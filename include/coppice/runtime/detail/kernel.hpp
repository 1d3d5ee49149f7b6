#pragma once
/// The one object behind a `runtime`: what processes, the libraries above this one, and schedulers may ask of it. Users
/// do not call it. How it works is in its parts, each in a file of its own: see src/runtime/README.md.
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
#include <coppice/runtime/observe.hpp>
#include <coppice/runtime/options.hpp>
#include <coppice/runtime/signals.hpp>
#include <coppice/runtime/transport.hpp>

namespace coppice::detail {

struct kernel_parts;
class scheduler;
class event_stream;
class mailbox_policy;

/// A reply that was not sent when the request was handled. Anybody may send it until the callee ends.
struct pending_reply {
  std::atomic<bool> answered{false};
  pid callee;
  pid caller;
  std::uint64_t call = 0;
  void (*fail)(kernel&, pending_reply&, const exit_reason&) = nullptr;
};

/// How a process begins, apart from what it does.
struct birth {
  struct texts {
    std::string name{};
    std::string label{};
  };
  pid parent{};                                    // nobody: spawned from outside
  bool linked = false;                             // to the parent
  monitor_ref watched_as{};                        // the monitor that the parent has on it
  std::uint64_t ack = 0;                           // not 0: the parent waits under this number until it is initialised
  std::unique_ptr<const texts> called{};           // null: it has neither a name nor a label
  std::shared_ptr<class mailbox_policy> policy{};  // its mailbox policy; null: it has none
  /// Null when both are empty.
  [[nodiscard]] static std::unique_ptr<const texts> by(std::string name, std::string label) {
    if (name.empty() && label.empty()) return nullptr;
    return std::make_unique<const texts>(std::move(name), std::move(label));
  }
  [[nodiscard]] bool has_name() const noexcept { return called != nullptr && !called->name.empty(); }
  [[nodiscard]] bool has_label() const noexcept { return called != nullptr && !called->label.empty(); }
};

/// Sent to the parent when a child ends that has unlinked itself from it. Only a parent that waits for the end of just
/// this child looks at it.
struct child_ended {
  pid who;
  exit_reason reason;
};

/// The first envelope of a process. Its type's `deliver` makes the body, in the new process.
struct start_letter : envelope {
  birth with;
  start_letter(const message_type* t, birth&& b) : envelope{t}, with{std::move(b)} {}
};

/// Reports that may come in floods. Of each kind the first few in a second are logged, then only their number.
enum class flood : std::uint8_t { dead_letters, unhandled, failures };

class kernel : public std::enable_shared_from_this<kernel> {
 public:
  /// Throws `std::invalid_argument`, `std::bad_alloc`.
  kernel(std::shared_ptr<environment> env, runtime_options options);
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

  // -- mail. All of these take the envelope.
  void send(pid to, signal s, envelope* e) {
    e->tag = envelope::tag_of(to.serial(), s);
    if (!table_.covers(to)) [[unlikely]]
      return send_elsewhere(to, e);
    slot& p = table_[to.index()];
    // A signal for a process that has ended is not left to the one that has its slot now, which may be stuck.
    if (p.is_special(to.serial())) [[unlikely]] {
      if (p.is_past(to.serial())) return send_elsewhere(to, e);
      if (s == signal::message && put_under_policy(to, e)) return;
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
  /// An exit signal: as `send`, and the receiver looks at it before the mail in its queue.
  void send_exit(pid to, exited x);
  /// From a thread that may outlive the runtime: as `send`. False: the runtime has ended, and the envelope was dropped.
  bool send_late(pid to, signal s, envelope* e);
  /// Pushes the messages that the current handler has held back: before a signal that must not overtake them.
  void flush_burst() {
    if (turn* t = current_turn; t != nullptr && t->out.target != nullptr) [[unlikely]]
      t->k->flush_burst(*t);  // of its kernel, which need not be this one
  }
  void flush_burst(turn& t);
  /// A message that nobody receives. A request does not count: its caller is answered.
  void note_dead_letter(pid to, const envelope& e);
  /// The same, because the process has no handler for it.
  void note_unhandled(pid to, const envelope& e);
  /// `reply` was taken along by somebody: when `me` ends first, its caller is answered.
  void defer(slot& me, const std::shared_ptr<pending_reply>& reply);

  // -- mailbox policies
  [[nodiscard]] std::shared_ptr<mailbox_policy> policy_of(pid who);
  /// Called when the process ends: returns the mail left there and releases the senders that wait for room.
  [[nodiscard]] std::vector<envelope*> close_policy(pid who);
  /// Tells the process that mail waits under its policy.
  void push_token(pid who);
  /// There is no room for it: a dead letter, or an error for its caller.
  void turn_away(pid to, envelope* e);
  [[nodiscard]] bool has_fast_lane(pid who) const noexcept {
    return alive(who) && table_[who.index()].is(slot::has_fast_lane);
  }

  // -- starting and ending processes
  /// Takes the letter. Gives `name_taken`, `stopped` or `capacity`; throws nothing.
  [[nodiscard]] result<pid> start(start_letter* first);
  /// Throws `std::bad_alloc` where the simulation wants memory to be short.
  void before_spawn();
  /// The parent's half of the links and monitors that a spawn has made.
  void adopt(slot& me, pid mine, pid child, bool linked, monitor_ref watched_as);
  /// An exit signal from its parent, `me`, that ends an idle process here and now and does not notify the parent.
  /// False: nothing was done, because it is not idle, is not a child of `me`, or the signal would not end it.
  [[nodiscard]] bool end_idle(slot& me, pid child, const exit_reason& why);
  /// Ends a process that is stuck in its handler as `abandoned`; false: it is not stuck (any more) or not alive.
  bool abandon(pid who);

  // -- links and monitors, by the process itself
  void link(slot& me, pid other);
  void unlink(slot& me, pid other);
  [[nodiscard]] monitor_ref monitor(slot& me, pid other);
  /// A ref for a monitor that is set together with the spawn of the monitored process.
  [[nodiscard]] monitor_ref monitor_unborn(slot& me);
  bool demonitor(slot& me, monitor_ref ref);
  /// Whether the exit was signalled by the parent. It ends a server even if the server traps exits.
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
  void set_label(slot& me, std::string label);

  // -- time
  [[nodiscard]] time_point now() noexcept { return env_->clock().now(); }
  /// Saturates: a delay beyond the end of time ends there.
  [[nodiscard]] time_point time_after(std::chrono::nanoseconds delay) noexcept {
    const time_point start = now();
    return delay < time_point::max() - start ? start + delay : time_point::max();
  }
  /// Takes the envelope, and sends it at `due`.
  [[nodiscard]] timer_ref arm(time_point due, pid to, signal s, envelope* e);
  /// True: it will never be sent. False: it was sent or disarmed before.
  bool disarm(timer_ref ref);
  [[nodiscard]] std::optional<std::chrono::nanoseconds> remaining(timer_ref ref);
  [[nodiscard]] timer_ref start_timer(slot& me, std::chrono::nanoseconds after);
  /// For a timer of `me`: also makes sure that a `timer_fired` already in the queue is never received.
  bool cancel_timer(slot& me, timer_ref ref);

  // -- work on threads for blocking calls
  void submit_blocking(std::move_only_function<void()> job);

  // -- freezing
  struct freeze_target {
    pid root;
    bool subtree = false;  // with all processes spawned linked by it or below it, also later ones
    friend bool operator==(const freeze_target&, const freeze_target&) = default;
  };
  /// Freezes them and returns a number for `freeze_done`, which `informs` receives once no turn of theirs is running.
  [[nodiscard]] result<std::uint64_t> freeze(freeze_target who, pid informs);
  /// Those of them that are still in their code, or have blocking work under way; `freeze_done` is not sent any more.
  /// Error: that freeze is not in force any more.
  [[nodiscard]] result<std::vector<pid>> stop_waiting_for_freeze(freeze_target who, std::uint64_t frozen_as);
  /// Undoes one freeze of the same target. False: there is none.
  bool thaw(freeze_target who);
  /// Whether a freeze of it is in force now.
  [[nodiscard]] bool is_frozen(pid who) const noexcept;

  // -- other nodes
  void set_transport(std::shared_ptr<transport> t);
  void deliver(connection_number over, parcel p);
  void node_lost(node_id node, connection_number lost);
  /// The call fails when the connection is lost.
  void await_remote_reply(pid caller, std::uint64_t call, pid callee, void (*fail)(kernel&, pid, std::uint64_t, error));
  void remote_reply_over(pid caller, std::uint64_t call, pid callee);

  // -- observation
  [[nodiscard]] std::vector<process_info> snapshot();
  [[nodiscard]] std::optional<process_info> info(pid who);
  [[nodiscard]] runtime_counters counters();
  [[nodiscard]] event_stream& events() noexcept;
  [[nodiscard]] bool logs(log_level level) const noexcept {
    return level >= options_.level && options_.level != log_level::off;
  }
  void log(log_level level, std::string_view text, std::initializer_list<log_field> fields = {}) {
    log(level, text, std::span<const log_field>{fields.begin(), fields.size()});
  }
  void log(log_level level, std::string_view text, std::span<const log_field> fields);
  void log_throttled(flood what, log_level level, std::string_view text, std::initializer_list<log_field> fields);

  // -- for schedulers
  [[nodiscard]] scheduler& sched() noexcept { return *scheduler_; }
  /// For an environment without threads, before anything is spawned.
  void set_scheduler(std::unique_ptr<scheduler> s);
  /// Handles up to `budget` signals of a process that the caller owns. True: it has more and must be scheduled again.
  [[nodiscard]] bool run(slot& p, int budget, turn& t);
  /// The caller owns the process.
  void schedule(slot& p, bool spawned = false);
  /// For an environment without threads: sends what is due now, and tells when to call it again.
  void fire_timers();
  [[nodiscard]] std::optional<time_point> next_timer();
  void flush_from_outside(turn& t);
  void report_stall(slot& p, std::chrono::milliseconds lasting);
  /// The thread that was stuck in an abandoned process has come back: frees what is left of the process. `kept`: all
  /// but the envelope.
  void bury(slot& p, envelope* e, bool kept);
  /// Whether `e`, which is in the queue of `p`, is a message, even if it carries the mark of the fast lane.
  [[nodiscard]] static bool is_message(const slot& p, const envelope& e) noexcept;

  // -- the end of the runtime
  /// Kills every process and waits until they have ended, or for the time the options give.
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
  std::atomic<bool> crashed_{false};
};

}  // namespace coppice::detail
