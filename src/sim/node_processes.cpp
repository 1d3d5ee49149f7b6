#include "internal/node_processes.hpp"

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

namespace coppice::sim {

void os_program::signalled(os_program_self& me, int number) {
  switch (number) {
    case SIGCHLD:
    case SIGCONT:
    case SIGURG:
    case SIGWINCH:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU: return;
    default: me.end({.signal = number});
  }
}

namespace {

// What arrives at a program.
struct started {};
struct signal_sent {
  int number;
};
struct input_sent {
  std::string bytes;
};
struct input_over {};

// What a program reports to the code that started it.
struct output_made {
  os_stream to;
  std::string bytes;
};
struct output_over {};

}  // namespace

class node_processes::self_of final : public os_program_self {
 public:
  self_of(node_processes& all, process& p) : all_{all}, process_{p} {}
  const os_command& command() const noexcept override;
  void print(std::string_view text, os_stream to) override;
  void after(std::chrono::nanoseconds delay, std::function<void()> what) override;
  void fork(std::unique_ptr<os_program> descendant) override;
  void close_input() override;
  void end(const os_exit& how) override { all_.end(process_, how); }

 private:
  node_processes& all_;
  process& process_;
};

struct node_processes::process {
  process(node_processes& all, std::uint64_t number, std::uint64_t of, os_command c, std::unique_ptr<os_program> p)
      : id{number},
        leader{of},
        command{std::move(c)},
        program{std::move(p)},
        self{all, *this},
        reads{command.input == os_stdio::pipe && number == of} {
    if (!reads) end_input();
    output_known = !prints_to(os_stream::output) && !prints_to(os_stream::error);
  }

  const std::uint64_t id;
  const std::uint64_t leader;  // of its group: the process that was spawned, itself or an ancestor
  const os_command command;
  const std::unique_ptr<os_program> program;
  self_of self;
  std::deque<std::variant<started, signal_sent, input_sent, input_over>> inbox{started{}};
  bool reads;               // its input is a pipe that it has not closed
  bool input_ends = false;  // nothing is sent to it any more
  bool ended = false;
  std::size_t input_waiting = 0;

  // of a leader
  os_process_events events{};
  std::deque<std::variant<output_made, output_over, os_exit>> outbox{};
  std::size_t sharing = 1;  // how many processes have its output streams
  bool wanted = true;       // there is a handle
  bool held = false;        // output stays in the outbox
  bool end_known = false;
  bool output_known = false;  // nothing more will be written, and who started it knows
  bool calling = false;       // one of the events is running

  void end_input() {
    if (!std::exchange(input_ends, true) && !ended) inbox.emplace_back(input_over{});
  }
  [[nodiscard]] bool prints_to(os_stream s) const {
    return (s == os_stream::output ? command.output : command.error) == os_stdio::pipe;
  }
  /// The entry of the outbox to report next. An end does not wait for output that is held back.
  [[nodiscard]] auto next_report() {
    if (!held) return outbox.begin();
    return std::ranges::find_if(outbox, [](const auto& each) { return std::holds_alternative<os_exit>(each); });
  }
};

class node_processes::handle final : public os_process {
 public:
  handle(std::shared_ptr<node_processes> all, process_ref p) : all_{std::move(all)}, process_{std::move(p)} {}
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;
  ~handle() override { all_->forget(process_->id); }

  std::int64_t id() const noexcept override { return static_cast<std::int64_t>(process_->id); }
  result<void> signal(int number) override {
    if (process_->end_known || all_->retired_) return has_ended();
    if (!is_signal(number)) return no_signal(number);
    send(*process_, number);
    return {};
  }
  result<void> signal_group(int number) override {
    if (process_->command.group == os_group::inherit)
      return fail(errc::invalid, "process " + std::to_string(id()) + " is in the group of this program itself");
    if (!is_signal(number)) return no_signal(number);
    for (const auto& [id, each] : all_->processes_)
      if (each->leader == process_->id) send(*each, number);
    return {};
  }
  result<void> write_input(std::string bytes) override {
    if (process_->command.input != os_stdio::pipe || input_closed_)
      return fail(errc::invalid, "the input of process " + std::to_string(id()) + " is not a pipe, or has been closed");
    if (process_->end_known || all_->retired_) return has_ended();
    if (!process_->reads)
      return fail(errc::exited, "process " + std::to_string(id()) + " does not read its input any more");
    if (process_->input_waiting >= input_limit)
      return fail(errc::capacity, "process " + std::to_string(id()) + " has not read its input; " +
                                      std::to_string(process_->input_waiting) + " bytes are waiting");
    process_->input_waiting += bytes.size();
    if (!process_->ended) process_->inbox.emplace_back(input_sent{std::move(bytes)});
    return {};
  }
  void close_input() override {
    input_closed_ = true;
    process_->end_input();
  }
  void hold_output() override { process_->held = true; }
  void release_output() override { process_->held = false; }

 private:
  static bool is_signal(int number) { return number >= 0 && number <= 64; }
  void send(process& to, int number) const {
    all_->note("os signal", to, static_cast<std::uint64_t>(number), std::to_string(number));
    if (number != 0 && !to.ended) to.inbox.emplace_back(signal_sent{number});
  }
  [[nodiscard]] std::unexpected<error> has_ended() const {
    return fail(errc::exited, "process " + std::to_string(id()) + " has ended");
  }
  [[nodiscard]] std::unexpected<error> no_signal(int number) const {
    return fail(errc::invalid, "signal " + std::to_string(number) + " to process " + std::to_string(id()) +
                                   ": there is no such signal");
  }

  const std::shared_ptr<node_processes> all_;
  const process_ref process_;
  bool input_closed_ = false;
};

// ---- what a program does

const os_command& node_processes::self_of::command() const noexcept { return process_.command; }

void node_processes::self_of::print(std::string_view text, os_stream to) {
  if (process_.ended || text.empty()) return;
  const auto leader = all_.processes_.find(process_.leader);
  if (leader == all_.processes_.end() || !leader->second->wanted || !leader->second->prints_to(to)) return;
  leader->second->outbox.emplace_back(output_made{to, std::string{text}});
}

void node_processes::self_of::after(std::chrono::nanoseconds delay, std::function<void()> what) {
  if (process_.ended) return;
  all_.timers_.emplace(all_.clocks_.monotonic(all_.world_.now()) + delay, timer{process_.id, std::move(what)});
}

void node_processes::self_of::fork(std::unique_ptr<os_program> descendant) {
  if (process_.ended) return;
  all_.add(process_.command, std::move(descendant), process_.leader);
  if (const auto leader = all_.processes_.find(process_.leader); leader != all_.processes_.end())
    ++leader->second->sharing;
}

void node_processes::self_of::close_input() { process_.reads = false; }

void node_processes::end(process& p, const os_exit& how) {
  if (std::exchange(p.ended, true)) return;
  note("os end", p, static_cast<std::uint64_t>(how.signal != 0 ? 128 + how.signal : how.code),
       how.signal != 0 ? "by signal " + std::to_string(how.signal) : "with code " + std::to_string(how.code));
  p.inbox.clear();
  std::erase_if(timers_, [&](const auto& each) { return each.second.of == p.id; });
  if (const auto found = processes_.find(p.leader); found != processes_.end()) {
    process& leader = *found->second;
    if (p.id == leader.id) leader.outbox.emplace_back(how);
    if (--leader.sharing == 0 && !leader.output_known) leader.outbox.emplace_back(output_over{});
    if (!leader.wanted) leader.outbox.clear();
  }
  erase_if_over(p.id);
}

// ---- starting and forgetting

node_processes::node_processes(world& w, const node_clock& clocks,
                               const std::map<std::string, os_program_maker, std::less<>>& installed)
    : world_{w}, clocks_{clocks}, installed_{installed} {}
node_processes::~node_processes() = default;

result<std::unique_ptr<os_process>> node_processes::spawn(const os_command& command, os_process_events events) {
  if (auto checked = check(command); !checked) return std::unexpected{checked.error()};
  const std::string what = "cannot start '" + command.program + "': ";
  if (retired_) return fail(errc::stopped, what + "the node is down");
  if (world_.fails("os.spawn")) return fail(errc::capacity, what + "the node cannot run more processes");
  const auto found = installed_.find(command.program);
  if (found == installed_.end()) return fail(errc::not_found, what + "no such program is installed on the node");
  std::unique_ptr<os_program> program;
  try {
    program = found->second(command);
  } catch (const std::system_error& x) {
    const bool missing = x.code() == std::errc::no_such_file_or_directory;
    return fail(missing ? errc::not_found : errc::start_failed, what + x.code().message());
  }
  process& p = add(command, std::move(program), 0);
  p.events = std::move(events);
  return std::make_unique<handle>(shared_from_this(), processes_.at(p.id));
}

/// Without a leader, the process leads a group of its own.
node_processes::process& node_processes::add(const os_command& command, std::unique_ptr<os_program> program,
                                             std::uint64_t leader) {
  const std::uint64_t id = ++last_id_;
  const auto p = std::make_shared<process>(*this, id, leader == 0 ? id : leader, command, std::move(program));
  note("os start", *p);
  processes_.emplace(id, p);
  return *p;
}

void node_processes::forget(std::uint64_t id) {
  const auto found = processes_.find(id);
  if (found == processes_.end()) return;
  const process_ref p = found->second;
  p->wanted = false;
  p->outbox.clear();
  p->end_input();
  if (!p->calling) drop_events(*p);  // otherwise one of these functions is the caller
  erase_if_over(id);
}

/// None of them is called any more. They may own the handle, which then is destroyed here.
void node_processes::drop_events(process& p) { const os_process_events gone = std::exchange(p.events, {}); }

void node_processes::erase_if_over(std::uint64_t id) {
  const auto found = processes_.find(id);
  if (found == processes_.end()) return;
  const process& p = *found->second;
  if (p.ended && (p.leader != p.id || !p.wanted)) processes_.erase(found);
}

void node_processes::retire() {
  retired_ = true;
  timers_.clear();
  const auto gone = std::exchange(processes_, {});
  for (const auto& [id, each] : gone) {
    each->ended = true;
    if (!each->calling) drop_events(*each);  // otherwise one of these functions has crashed the node
  }
}

// ---- what happens next

std::size_t node_processes::choices() const noexcept {
  std::size_t count = 0;
  for (const auto& [id, p] : processes_) {
    if (!p->inbox.empty()) ++count;
    if (p->next_report() != p->outbox.end()) ++count;
  }
  return count;
}

void node_processes::do_one(std::size_t pick) {
  for (const auto& [id, each] : processes_) {
    const process_ref p = each;  // it may be erased meanwhile
    if (!p->inbox.empty() && pick-- == 0) return deliver_to_program(*p);
    if (p->next_report() != p->outbox.end() && pick-- == 0) return report(*p);
  }
}

void node_processes::deliver_to_program(process& p) {
  note("os run", p);
  auto next = std::move(p.inbox.front());
  p.inbox.pop_front();
  if (std::holds_alternative<started>(next)) return p.program->start(p.self);
  if (const auto* s = std::get_if<signal_sent>(&next))
    return s->number == SIGKILL ? end(p, {.signal = SIGKILL}) : p.program->signalled(p.self, s->number);
  if (std::holds_alternative<input_over>(next)) return p.program->input_closed(p.self);
  std::string bytes = std::get<input_sent>(std::move(next)).bytes;
  p.input_waiting -= bytes.size();
  if (p.reads) p.program->input(p.self, bytes);
}

void node_processes::report(process& leader) {
  const auto at = leader.next_report();
  auto next = std::move(*at);
  leader.outbox.erase(at);
  if (auto* made = std::get_if<output_made>(&next)) {
    // A pipe keeps no borders: what was written at once may arrive in pieces.
    if (made->bytes.size() > 1 && world_.chance().chance(0.2)) {
      const auto size = 1 + world_.chance().below(made->bytes.size() - 1);
      leader.outbox.emplace_front(output_made{made->to, made->bytes.substr(size)});
      made->bytes.resize(size);
    }
  }
  note("os report", leader, next.index(),
       std::holds_alternative<output_made>(next) ? "output"
       : std::holds_alternative<os_exit>(next)   ? "its end"
                                                 : "the end of its output");
  leader.calling = true;
  if (const auto* made = std::get_if<output_made>(&next)) {
    if (leader.events.output) leader.events.output(made->to, made->bytes);
  } else if (const auto* how = std::get_if<os_exit>(&next)) {
    leader.end_known = true;
    if (leader.events.ended) leader.events.ended(*how);
  } else {
    leader.output_known = true;
    if (leader.events.output_closed) leader.events.output_closed();
  }
  leader.calling = false;
  if (retired_ || !leader.wanted || (leader.end_known && leader.output_known)) drop_events(leader);
}

std::optional<time_point> node_processes::next() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first;
}

void node_processes::advance(time_point now) {
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const timer due = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    const process_ref p = processes_.at(due.of);  // its timers go with it
    note("os timer", *p);
    due.what();
  }
}

void node_processes::note(std::string_view what, const process& about, std::uint64_t detail, std::string_view text) {
  world_.add_to_hash(what, node_.value(), about.id, detail);
  if (!world_.traced()) return;
  std::string line{what};
  line.append(" ").append(about.command.program).append(" (").append(std::to_string(about.id)).append(")");
  if (!text.empty()) line.append(": ").append(text);
  world_.tell(node_, std::move(line));
}

}  // namespace coppice::sim
