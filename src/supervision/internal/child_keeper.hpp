#pragma once
/// What all kinds of supervisors do with a child: start it, stop it, count its restarts, remember how it ended, tell.
#include <coppice/spec/restart_window.hpp>
#include <coppice/supervision/child_history.hpp>

#include "child_process.hpp"

namespace coppice::detail {

/// The rarely used settings of a child.
struct rare_settings {
  std::string name;
  std::optional<coppice::backoff> backoff;
  std::chrono::nanoseconds start_within = forever;
};

/// What a supervisor did about the end of a child, and why: one text for all that ended with it.
struct exit_decision {
  exit_action action = exit_action::kept;
  std::shared_ptr<const std::string> because{};  // null: there is nothing to say
  exit_decision(exit_action a) : action{a} {}    // NOLINT(google-explicit-constructor): most have nothing to say
  exit_decision(exit_action a, std::string why)
      : action{a}, because{std::make_shared<const std::string>(std::move(why))} {}
};

/// The last ends of a child: a circle of nodes, which those that end together have taken from the pool together. So a
/// thousand of them find the nodes to write in next to each other; with a block for each child they would not be in the
/// cache, and that would cost as much as all the rest of a stop.
class exit_ring {
 public:
  struct end {
    time_point at;
    std::chrono::nanoseconds uptime;
    exit_reason reason;
    exit_decision did;
    pid who;
  };
  exit_ring() = default;
  exit_ring(const exit_ring&) = delete;
  exit_ring& operator=(const exit_ring&) = delete;
  ~exit_ring() {
    for (; size_ > 0; --size_) {
      node* oldest = std::exchange(newest_->next, newest_->next->next);
      std::destroy_at(oldest);
      release(oldest, sizeof(node));
    }
  }
  void add(end e) {
    if (size_ == most) {
      newest_ = newest_->next;
      newest_->what = std::move(e);
      return;
    }
    node* added = ::new (allocate(sizeof(node))) node{std::move(e)};
    added->next = newest_ != nullptr ? std::exchange(newest_->next, added) : added;
    newest_ = added;
    ++size_;
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] end& newest() noexcept { return newest_->what; }
  [[nodiscard]] const end& newest() const noexcept { return newest_->what; }
  /// Oldest first.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const node* n = newest_;
    for (std::uint8_t i = 0; i < size_; ++i) {
      n = n->next;
      visit(n->what);
    }
  }

 private:
  static constexpr std::uint8_t most = 50;
  struct node {
    end what;
    node* next = nullptr;
  };
  node* newest_ = nullptr;
  std::uint8_t size_ = 0;
};

/// One child. A hundred thousand of them should be cheap.
struct supervised {
  std::uint64_t number = 0;  // never used again
  std::string id;
  child_start start;  // empty for a temporary one that was started: it is never started again
  std::unique_ptr<rare_settings> rare;
  coppice::shutdown shutdown{default_shutdown(child_type::worker)};
  coppice::restart restart = coppice::restart::permanent;
  child_type type = child_type::worker;
  bool significant = false;
  child_state state = child_state::undefined;
  std::uint32_t failures = 0;  // in a row, for the backoff
  pid who;                     // while it runs; of a dynamic child that is restarting, who it was
  std::size_t place = 0;       // in the order of start
  time_point since{};
  std::uint64_t restarts = 0;
  timer_ref wait{};
  exit_ring history;

  supervised(std::uint64_t n, child_spec spec) : number{n} { become(std::move(spec)); }
  void become(child_spec spec);
  [[nodiscard]] child_spec spec() const;
  [[nodiscard]] const coppice::backoff* backoff() const noexcept {
    return rare && rare->backoff ? &*rare->backoff : nullptr;
  }
  [[nodiscard]] start_order order() const noexcept;
  [[nodiscard]] child_info info(self& me) const;
  [[nodiscard]] bool ended_before() const noexcept { return !history.empty(); }
  /// Once it has ended.
  [[nodiscard]] const exit_reason& last_reason() const noexcept { return history.newest().reason; }
  [[nodiscard]] std::vector<exit_record> exits(self& me) const;

  static void* operator new(std::size_t n) { return allocate(n); }
  static void operator delete(void* p, std::size_t n) noexcept { release(p, n); }
};

/// For whoever asked for the start. What the child said stays the cause: its `bad_combination`, say, is no fault of the
/// spec it was started by (fact 94).
[[nodiscard]] error not_started(const std::string& id, error why);

class child_keeper : public death_watcher {
 public:
  child_keeper(restart_limit limit, std::optional<std::chrono::nanoseconds> abandon_after)
      : limit_{limit}, abandon_after_{abandon_after} {}
  child_keeper(const child_keeper&) = delete;
  child_keeper& operator=(const child_keeper&) = delete;

  void saw(const exited& x) final;

 protected:
  /// In two halves, here and below, so that a start costs one frame.
  [[nodiscard]] task<start_result> start_one(self& me, const supervised& c) {
    return start_process(me, c.order(), *this, abandon_after_);
  }
  /// Runs, or was ignored and stays down. An error leaves it as it was.
  [[nodiscard]] std::optional<error> has_started(self& me, supervised& c, start_result started, time_point now);
  /// Leaves it down.
  [[nodiscard]] task<void> stop_one(self& me, supervised& c, exit_decision why);
  /// The same in two halves. Nobody: it does not run.
  [[nodiscard]] pid leaves(self& me, supervised& c);
  [[nodiscard]] task<stopped_process> stop_process(self& me, const supervised& c, pid who) {
    return detail::stop_process(me, who, c.shutdown, abandon_after_, *this);
  }
  /// Without a reason nothing is written down: nobody will be there to ask.
  void has_stopped(self& me, supervised& c, pid who, stopped_process how, time_point now,
                   const std::optional<exit_decision>& why);
  /// The one that has ended, if it is one of ours and really has; it does not run any more.
  [[nodiscard]] supervised* take_dead(self& me, const exited& x);
  /// It has ended and shall be restarted: written down, and whether there may be one more restart.
  [[nodiscard]] bool dies_and_may_restart(self& me, supervised& c, const exited& x);
  /// It has ended and stays down.
  void stays_down(self& me, supervised& c, const exited& x);
  void start_has_failed(self& me, supervised& c, const error& why);
  /// False: the limit is reached, and the supervisor ends.
  [[nodiscard]] bool may_restart(self& me, supervised& c, time_point now);
  void delay_restart(self& me, supervised& c);
  void cancel_wait(self& me, supervised& c);
  /// The child whose wait is over; null: it does not wait any more.
  [[nodiscard]] supervised* take_waiting(timer_ref wait);
  /// The child to be tried again; null: that is over.
  [[nodiscard]] supervised* to_retry(std::uint64_t number);
  /// It is destroyed next.
  void drop(supervised& c);
  template <class Text>
  void tell(self& me, log_level level, supervisor_event::kind what, const std::string& child, pid who,
            const exit_reason& why, Text&& text);

  struct number_hash {
    static constexpr std::uint64_t none = 0;
    std::uint64_t operator()(std::uint64_t n) const noexcept { return mix(n); }
  };
  restart_limit limit_;
  std::optional<std::chrono::nanoseconds> abandon_after_;
  flat_map<pid, supervised*, pid_hash> by_pid_;

 private:
  void judge_stop(self& me, const supervised& c, pid who, const stopped_process& s);
  static void amend_record(supervised& c, exit_decision did);

  restart_window window_;
  flat_map<std::uint64_t, supervised*, number_hash> waiting_;   // by the timer of their backoff
  flat_map<std::uint64_t, supervised*, number_hash> retrying_;  // by their number: a retry is on its way, or was
  flat_map<pid, exit_reason, pid_hash> early_;  // children known to have ended, whose turn has not come yet
};

template <class Text>
void child_keeper::tell(self& me, log_level level, supervisor_event::kind what, const std::string& child, pid who,
                        const exit_reason& why, Text&& text) {
  kernel& k = me.host();
  const bool logs = k.logs(level);
  const bool wanted = k.events().wanted(plain<supervisor_event>);
  if (!logs && !wanted) return;
  std::string line = text();
  if (logs)
    k.log(level, line,
          {{"supervisor", to_string(me.id())},
           {"child", child},
           {"pid", to_string(who)},
           {"event", std::string{to_string(what)}}});
  if (wanted)
    k.events().publish(supervisor_event{
        .what = what, .supervisor = me.id(), .child = child, .who = who, .reason = why, .text = std::move(line)});
}

}  // namespace coppice::detail
