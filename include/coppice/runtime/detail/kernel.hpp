#pragma once
/// The one object behind a `runtime`: process table, signals, names, timers, events. Templates in the public headers
/// call it; users do not.
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <coppice/base/error.hpp>
#include <coppice/env/environment.hpp>
#include <coppice/runtime/detail/slot.hpp>
#include <coppice/runtime/log.hpp>
#include <coppice/runtime/observe.hpp>
#include <coppice/runtime/options.hpp>
#include <coppice/runtime/signals.hpp>
#include <coppice/runtime/transport.hpp>

namespace coppice::detail {

class scheduler;
class names;
class timers;
class remote_ties;
struct tie;
struct link_state;
struct link_signal;
struct unlink_signal;
struct monitor_signal;
class event_stream;
class gate;

/// An answer that was not given when the request was handled, and that anybody may give until the callee ends.
struct pending_reply {
  std::atomic<bool> answered{false};
  pid callee;
  pid caller;
  std::uint64_t call = 0;
  void (*fail)(kernel&, pending_reply&, const exit_reason&) = nullptr;
};

/// What a caller is told when its request is lost.
[[nodiscard]] error error_of(loss how);

/// How a process begins, apart from what it does.
struct birth {
  struct texts {
    std::string name{};
    std::string label{};
  };
  pid parent{};                           // nobody: spawned from outside
  bool linked = false;                    // to the parent
  monitor_ref watched_as{};               // by the parent
  std::uint64_t ack = 0;                  // the parent waits until it has begun, under this number
  std::unique_ptr<const texts> called{};  // few are
  std::shared_ptr<class gate> gate{};     // its mail goes through it; null: it does not
  /// Null when both are empty.
  [[nodiscard]] static std::unique_ptr<const texts> by(std::string name, std::string label) {
    if (name.empty() && label.empty()) return nullptr;
    return std::make_unique<const texts>(std::move(name), std::move(label));
  }
  [[nodiscard]] bool has_name() const noexcept { return called != nullptr && !called->name.empty(); }
  [[nodiscard]] bool has_label() const noexcept { return called != nullptr && !called->label.empty(); }
};

/// The end of a process that has unlinked itself from who started it, for whoever waits for just that; nobody else
/// hears it.
struct child_ended {
  pid who;
  exit_reason reason;
};

/// The first envelope of a process. Its type's `deliver` makes the body, in the new process.
struct start_letter : envelope {
  birth with;
  start_letter(const message_type* t, birth&& b) : envelope{t}, with{std::move(b)} {}
};

class kernel : public std::enable_shared_from_this<kernel> {
 public:
  /// Throws `std::invalid_argument`, `std::bad_alloc`.
  kernel(std::shared_ptr<environment> env, runtime_options options);
  ~kernel();
  kernel(const kernel&) = delete;
  kernel& operator=(const kernel&) = delete;

  [[nodiscard]] node_id node() const noexcept { return node_; }
  [[nodiscard]] environment& env() noexcept { return *env_; }
  [[nodiscard]] pid pid_of(const slot& p) const noexcept {
    return pid::from_parts(node_, static_cast<std::uint32_t>(&p - table_), p.serial());
  }
  [[nodiscard]] bool alive(pid who) const noexcept;
  /// It has ended and everybody was told. False may also mean that this is not known yet.
  [[nodiscard]] bool gone(pid who) const noexcept;
  /// Whether `who` started `p`, linked to it: whatever became of the link.
  [[nodiscard]] bool is_parent(const slot& p, pid who) const noexcept {
    return p.is(slot::born_linked) && who.node() == node_ && who.index() == p.parent_index &&
           who.serial() == p.parent_serial;
  }

  /// Its parent's, whom a server obeys.
  [[nodiscard]] bool is_order(const slot& p, const exited& x) const noexcept {
    return x.signalled && is_parent(p, x.from);
  }
  /// From now on `me`, who asks, will hear of the end of `child`: by its exit, or as `child_ended`.
  [[nodiscard]] bool will_tell(const slot& me, pid child) const noexcept;

  // -- sending: takes the envelope
  void send(pid to, signal s, envelope* e) {
    e->tag = envelope::tag_of(to.serial(), s);
    if (to.node() != node_ || to.index() >= table_size_) [[unlikely]]
      return send_elsewhere(to, e);
    slot& p = table_[to.index()];
    // What is for one that is gone is not left to the process that has its place now, which may be stuck in its code.
    if (p.is_special(to.serial())) [[unlikely]] {
      if (p.is_past(to.serial())) return send_elsewhere(to, e);
      if (s == signal::message && put_into_gate(to, e)) return;
    }
    turn* t = current_turn;
    if (t != nullptr && t->out.target == &p) [[unlikely]]
      return add_to_burst(*t, e);
    if (p.mail.push(e))
      schedule(p);
    else if (t != nullptr)
      note_busy(*t, p);
  }
  /// What is held back of the current handler goes out: before a signal that must not overtake it.
  void flush_burst() {
    if (turn* t = current_turn; t != nullptr && t->out.target != nullptr) [[unlikely]]
      t->k->flush_burst(*t);  // its kernel's, which need not be this one
  }
  void flush_burst(turn& t);
  void flush_from_outside(turn& t);
  /// An exit signal: as `send`, and the receiver looks at it before the mail that waits.
  void send_exit(pid to, exited x);
  /// To an actor: as `send`, and the receiver takes it before the mail that waits.
  void send_order(pid to, envelope* e);
  /// The same for all signals, after a while.
  void send_due(pid to, envelope* e) { e->what() == signal::order ? send_order(to, e) : send(to, e->what(), e); }
  [[nodiscard]] std::shared_ptr<gate> gate_of(pid who);
  /// Of a process that ends: what is left in its gate, and who waits for room there is told.
  [[nodiscard]] std::vector<envelope*> close_gate(pid who);
  void push_token(pid who);
  /// There is no room for it: a dead letter, or the caller's error.
  void turn_away(pid to, envelope* e);
  /// Whether it is an actor.
  [[nodiscard]] bool takes_orders(pid who) const noexcept {
    return alive(who) && table_[who.index()].is(slot::takes_orders);
  }
  /// Whether a message to it may do more than to push it.
  [[nodiscard]] bool is_gated(pid who) const noexcept { return table_[who.index()].is(slot::gated); }

  /// An exit signal by its parent, `me`, that ends an idle process here and now, without a word to the parent. False:
  /// it is not idle, or not `me`'s to end, or the signal would not end it; then nothing was done.
  [[nodiscard]] bool end_idle(slot& me, pid child, const exit_reason& why);

  // -- spawning
  /// Takes the letter. Gives `name_taken` when the name is another's; throws nothing.
  [[nodiscard]] result<pid> start(start_letter* first);
  /// Throws `std::bad_alloc` where the simulation wants memory to be short.
  void before_spawn();

  // -- for the process itself, in its turn
  void link(slot& me, pid other);
  void unlink(slot& me, pid other);
  [[nodiscard]] monitor_ref monitor(slot& me, pid other);
  /// A ref for a monitor that is set together with the spawn of the monitored process.
  [[nodiscard]] monitor_ref monitor_unborn(slot& me);
  /// After the spawn of a linked or monitored child: the parent's half.
  void adopt(slot& me, pid mine, pid child, bool linked, monitor_ref watched_as);
  bool demonitor(slot& me, monitor_ref ref);
  void set_label(slot& me, std::string label);
  /// With its first letter, the process is born in the same step: nobody can find its name and nobody behind it.
  [[nodiscard]] result<void> register_name(std::string_view name, pid who, start_letter* first = nullptr);
  bool unregister_name(std::string_view name);
  [[nodiscard]] pid where(std::string_view name);
  /// Empty: it has none.
  [[nodiscard]] std::string name_of(pid who);

  // -- timers
  /// Takes the envelope, and sends it at `due`.
  [[nodiscard]] timer_ref arm(time_point due, pid to, signal s, envelope* e);
  /// True: it will never be sent. False: it was sent or disarmed before.
  bool disarm(timer_ref ref);
  [[nodiscard]] std::optional<std::chrono::nanoseconds> remaining(timer_ref ref);
  [[nodiscard]] timer_ref start_timer(slot& me, std::chrono::nanoseconds after);
  /// For a timer of `me`: also makes sure that a `timeout` already queued is never received.
  bool cancel_timer(slot& me, timer_ref ref);
  [[nodiscard]] time_point now() noexcept { return env_->clock().now(); }
  /// However far: the end of time comes first.
  [[nodiscard]] time_point time_after(std::chrono::nanoseconds delay) noexcept {
    const time_point start = now();
    return delay < time_point::max() - start ? start + delay : time_point::max();
  }

  /// `reply` was taken along by somebody: when `me` ends first, its caller is told so.
  void defer(slot& me, const std::shared_ptr<pending_reply>& reply);

  // -- work on threads for blocking calls
  void submit_blocking(std::move_only_function<void()> job) { env_->blocking().submit(std::move(job)); }
  /// From a thread that may outlive the runtime: as `send`, or nothing when it is over.
  void send_late(pid to, signal s, envelope* e);

  // -- calls to other nodes end with the connection
  void await_remote_reply(pid caller, std::uint64_t call, pid callee, void (*fail)(kernel&, pid, std::uint64_t, error));
  void remote_reply_over(pid caller, std::uint64_t call, pid callee);

  // -- running; see scheduler
  /// Handles up to `budget` signals of a process the caller owns; true: it has more and must be scheduled again.
  [[nodiscard]] bool run(slot& p, int budget, turn& t);
  void schedule(slot& p, bool spawned = false);
  [[nodiscard]] scheduler& sched() noexcept { return *scheduler_; }
  /// For an environment without threads, before anything is spawned.
  void set_scheduler(std::unique_ptr<scheduler> s);
  /// Slots without a process, by the handful; how many there were.
  [[nodiscard]] std::size_t take_slots(std::uint32_t* into, std::size_t most);
  void give_slots(const std::uint32_t* from, std::size_t n) noexcept;
  /// A small table has no slots to spare for the workers' reserves.
  [[nodiscard]] bool small_table() const noexcept { return table_size_ < (1U << 16U); }
  [[nodiscard]] slot& slot_at(std::uint32_t index) noexcept { return table_[index]; }
  [[nodiscard]] const runtime_options& options() const noexcept { return options_; }
  [[nodiscard]] timers& clockwork() noexcept { return *timers_; }
  /// For who has no threads: sends what is due now, and tells when to come again.
  void fire_timers();
  [[nodiscard]] std::optional<time_point> next_timer();

  // -- remote
  void set_transport(std::shared_ptr<transport> t);
  void deliver(connection_number over, parcel p);
  void node_lost(node_id node, connection_number lost);

  // -- observation
  [[nodiscard]] std::vector<process_info> snapshot();
  [[nodiscard]] std::optional<process_info> info(pid who);
  [[nodiscard]] runtime_counters counters();
  void log(log_level level, std::string_view text, std::initializer_list<log_field> fields = {}) {
    log(level, text, std::span<const log_field>{fields.begin(), fields.size()});
  }
  void log(log_level level, std::string_view text, std::span<const log_field> fields);
  /// What may come in floods: the first few of a second, and then how many more there were.
  enum class flood : std::uint8_t { dead_letters, unhandled, actor_failures };
  void log_throttled(flood what, log_level level, std::string_view text, std::initializer_list<log_field> fields);
  [[nodiscard]] bool logs(log_level level) const noexcept {
    return level >= options_.level && options_.level != log_level::off;
  }
  [[nodiscard]] event_stream& events() noexcept { return *events_; }
  /// Whether `e`, which is in the queue of `p`, is a message: also one that is marked.
  [[nodiscard]] static bool is_message(const slot& p, const envelope& e) noexcept;
  /// A message that nobody receives. A request is none: its caller hears of it.
  void note_dead_letter(pid to, const envelope& e);
  /// The same, because the process has no handler for it.
  void note_unhandled(pid to, const envelope& e);
  void report_stall(slot& p, std::chrono::milliseconds lasting);
  void report_left_behind();
  void count_outside(std::uint64_t spawned, std::uint64_t ended) noexcept;

  // -- the end
  /// Ends a process that is stuck in its handler as `abandoned`; false: it is not stuck (any more) or not alive.
  bool abandon(pid who);
  /// Kills every process and waits until they are gone, or for the time the options give.
  /// False: threads are stuck in processes, and this object must outlive them.
  [[nodiscard]] bool stop();
  /// The thread that was stuck in an abandoned process has come back: frees what is left of it. `kept`: not the
  /// envelope.
  void bury(slot& p, envelope* e, bool kept);
  /// Drops everything without a word to anybody, as a power cut would. Nothing may be running.
  void crash();
  [[nodiscard]] bool crashed() const noexcept { return crashed_; }

 private:
  void count_dead_letter(pid to, const envelope& e);
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
  [[nodiscard]] verdict offer(slot& p, envelope& e, turn& t);
  void terminate(body& b, turn& t);
  [[nodiscard]] verdict offer_as_message(slot& p, envelope& e, turn& t);
  [[nodiscard]] verdict dropped(envelope& e);
  [[nodiscard]] verdict handle_rare(slot& p, envelope& e, turn& t);
  [[nodiscard]] verdict begin(slot& p, start_letter& first, turn& t);
  [[nodiscard]] verdict handle_exit(slot& p, envelope& e, turn& t);
  [[nodiscard]] bool take_down(slot& p, envelope& e);
  [[nodiscard]] bool take_timeout(slot& p, envelope& e);
  void apply(slot& p, const envelope& e);
  void apply_ahead(slot& p, envelope& e);
  void settle_links(slot& p, envelope* from, const envelope* kill);
  [[nodiscard]] bool look_ahead(slot& p, envelope* from, turn& t);
  [[nodiscard]] bool find_exit(slot& p, envelope* from, turn& t, std::uint8_t wanted);
  void bring_forward(slot& p, envelope* from);
  static void unmark(slot& p);
  void finish(slot& p, const exit_reason& why, body* to_destroy, envelope* rest,
              std::span<const open_call> unanswered = {});
  void end(slot& p, turn& t, envelope* rest);
  void answer_requests(envelope* from, std::uint32_t serial, const exit_reason& why);
  void tell_the_bereaved(slot& p, pid me, const exit_reason& why);
  void report_end(pid me, const exit_reason& why, std::string name, std::string label);
  void send_elsewhere(pid to, envelope* e);
  [[nodiscard]] bool put_into_gate(pid to, envelope* e);
  void bounce(pid to, envelope& e, const exit_reason& why);
  template <signal s, class Content>
  void send_small(pid to, const Content& content);
  void receive_link(slot& p, const link_signal& l);
  void receive_unlink(slot& p, const unlink_signal& u);
  void receive_unlink_ack(slot& p, const unlink_signal& u);
  void receive_monitor(slot& p, const monitor_signal& m);
  void receive_demonitor(slot& p, const monitor_signal& m);
  void drop_watch(pid watcher, pid target, monitor_ref ref);
  [[nodiscard]] bool elsewhere(pid who) const noexcept { return who.node() != node_; }
  void tie_to(pid remote, tie t);
  void untie(pid remote, const tie& t);
  [[nodiscard]] connection_number connection_to(pid remote);
  [[nodiscard]] std::optional<link_state> remove_link(slot& p, pid other);
  void send_link_lost(pid to, pid other, connection_number lost);
  [[nodiscard]] verdict handle_link_lost(slot& p, envelope& e, turn& t);
  [[nodiscard]] side_block& side_of(slot& p);
  void free_side(slot& p) noexcept;
  void push_start(slot& p, start_letter* first);
  [[nodiscard]] std::uint32_t take_slot();
  void free_slot(std::uint32_t index) noexcept;
  enum class view : std::uint8_t { from_outside, as_owner };
  [[nodiscard]] process_info describe(slot& p, view from);
  [[nodiscard]] bool look_at(slot& p, std::vector<process_info>& into);
  [[nodiscard]] std::vector<process_info> look_at_all(std::uint32_t first, std::uint32_t last);
  void describe_yourself(slot& p);
  void count_waiting(slot& p, const envelope* from);
  void release_claim(slot& p, envelope& mine);
  /// Gives an idle process back that was claimed for a moment, whatever happens meanwhile.
  struct claim_guard {
    kernel& k;
    slot& p;
    envelope& mine;
    ~claim_guard() { k.release_claim(p, mine); }
  };

  std::shared_ptr<environment> env_;
  runtime_options options_;
  node_id node_;
  slot* table_ = nullptr;
  std::uint32_t table_size_ = 0;
  fault_plan* faults_ = nullptr;
  std::atomic<std::uint32_t> slots_used_{1};
  std::mutex free_mutex_;
  std::vector<std::uint32_t> free_slots_;
  std::mutex described_mutex_;
  std::map<pid, process_info> described_;  // by processes that were asked while they were busy
  std::atomic<std::uint32_t> observers_{0};
  std::unique_ptr<names> names_;
  std::unique_ptr<event_stream> events_;
  std::unique_ptr<timers> timers_;
  std::unique_ptr<remote_ties> ties_;
  std::shared_ptr<transport> transport_;
  std::unique_ptr<scheduler> scheduler_;
  std::atomic<std::uint64_t> dead_letters_{0};
  std::atomic<std::uint64_t> looked_ahead_{0};
  std::atomic<std::uint64_t> spawned_outside_{0};
  std::atomic<std::uint64_t> ended_outside_{0};
  time_point started_{};
  std::atomic<bool> stopping_{false};
  std::mutex late_mutex_;
  std::mutex stranded_mutex_;
  struct throttle {
    std::mutex mutex;
    time_point since{};
    std::uint64_t reports = 0;
  };
  std::array<throttle, 3> floods_;
  struct gate_shard {
    std::mutex mutex;
    std::unordered_map<pid, std::shared_ptr<gate>> gates;
  };
  [[nodiscard]] gate_shard& gates_near(pid who) noexcept { return gates_[who.index() % gates_.size()]; }
  void set_gate(pid who, std::shared_ptr<gate> g);
  std::array<gate_shard, 64> gates_;
  std::map<slot*, body*> stranded_;  // bodies of abandoned processes, whose code has not come back yet
  std::atomic<bool> crashed_{false};
};

}  // namespace coppice::detail
