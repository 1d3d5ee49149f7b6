// What can be seen from outside, and the end of a runtime.
#include <cstdio>

#include <coppice/runtime/detail/event_stream.hpp>
#include <coppice/runtime/detail/kernel.hpp>

#include "internal/names.hpp"
#include "internal/remote_ties.hpp"
#include "internal/side_block.hpp"
#include "internal/timers.hpp"
#include "internal/workers.hpp"

namespace coppice {

std::string_view to_string(process_state state) noexcept {
  switch (state) {
    case process_state::waiting: return "waiting";
    case process_state::runnable: return "runnable";
    case process_state::running: return "running";
  }
  return "unknown";
}

namespace detail {

process_info kernel::describe(slot& p, view from) {
  process_info out;
  out.id = pid_of(p);
  out.traps_exits = p.is(slot::traps_exits);
  out.handled = p.handled.load(std::memory_order_relaxed);
  out.mailbox = p.length.load(std::memory_order_relaxed);
  out.memory = sizeof(slot) + std::size_t{16} * p.body_units.load(std::memory_order_relaxed);
  const auto born = std::chrono::milliseconds{100} * p.born_ds.load(std::memory_order_relaxed);
  const auto age = env_->clock().coarse_now() - started_ - born;
  out.age = std::max(std::chrono::duration_cast<std::chrono::milliseconds>(age), std::chrono::milliseconds{0});
  if (const std::uint32_t parent = p.parent_index.load(std::memory_order_relaxed); parent != 0) {
    out.parent = pid::from_parts(node_, parent, p.parent_serial.load(std::memory_order_relaxed));
    if (p.is(slot::parent_linked)) out.links.push_back(out.parent);
  }
  if (p.named.load(std::memory_order_relaxed) != 0) std::tie(out.name, out.label) = names_->texts(out.id);
  if (from == view::from_outside || p.side == nullptr) return out;
  out.memory += p.side->bytes();
  out.monitors = static_cast<std::uint32_t>(p.side->monitors.size());
  out.monitored = static_cast<std::uint32_t>(p.side->watchers.size());
  p.side->links.for_each([&](pid other, const link_state& l) {
    if (l.unlinking == 0) out.links.push_back(other);
  });
  return out;
}

/// An idle process is taken over for a moment, so that nothing can change under our eyes. False: it is busy, and was
/// asked to describe itself.
bool kernel::look_at(slot& p, std::vector<process_info>& into) {
  envelope mine{nullptr};
  if (!p.mail.claim(&mine)) {
    if (env_->threads() == nullptr) {  // nobody runs at the same time: it can be looked at as it is
      const bool in_hand = turn_here() != nullptr && turn_here()->p == &p;
      count_waiting(p, in_hand ? p.mail.head->next.load(std::memory_order_acquire) : p.mail.head);
      into.push_back(describe(p, view::as_owner));
      into.back().state = in_hand || scheduler_->is_running(p) ? process_state::running : process_state::runnable;
      return true;
    }
    p.urgent.fetch_or(look_at_yourself, std::memory_order_relaxed);
    return false;
  }
  const claim_guard giving_back{*this, p, mine};
  if (p.is(slot::has_process)) {
    p.length.store(p.process->type->held(*p.process), std::memory_order_relaxed);
    into.push_back(describe(p, view::as_owner));
  }
  return true;
}

void kernel::count_waiting(slot& p, const envelope* from) {
  std::uint32_t waiting = p.process != nullptr ? p.process->type->held(*p.process) : 0;
  for (const envelope* e = from; e != nullptr; e = e->next.load(std::memory_order_acquire))
    if (e->serial() == p.serial() && is_message(p, *e)) ++waiting;
  p.length.store(waiting, std::memory_order_relaxed);
}

void kernel::describe_yourself(slot& p) {
  if (observers_.load(std::memory_order_relaxed) == 0) return;
  process_info mine = describe(p, view::as_owner);
  const std::scoped_lock lock{described_mutex_};
  described_.insert_or_assign(mine.id, std::move(mine));
}

std::vector<process_info> kernel::look_at_all(std::uint32_t first, std::uint32_t last) {
  std::vector<process_info> all;
  std::vector<pid> busy;
  observers_.fetch_add(1);
  for (std::uint32_t i = first; i < last; ++i) {
    if (!table_[i].is(slot::has_process)) continue;
    const pid who = pid_of(table_[i]);
    if (!look_at(table_[i], all)) busy.push_back(who);
  }
  const bool may_wait = turn_here() == nullptr && env_->threads() != nullptr;
  std::atomic<std::uint32_t> never{0};
  if (!busy.empty() && may_wait) env_->threads()->wait(never, 0, now() + std::chrono::milliseconds{2});
  for (const pid who : busy) {
    slot& p = table_[who.index()];
    const std::scoped_lock lock{described_mutex_};
    const auto found = described_.find(who);
    process_info one = found != described_.end() ? std::move(found->second) : describe(p, view::from_outside);
    one.complete = found != described_.end();
    if (found != described_.end()) described_.erase(found);
    if (!alive(who)) continue;
    one.state = scheduler_->is_running(p) ? process_state::running : process_state::runnable;
    all.push_back(std::move(one));
  }
  if (observers_.fetch_sub(1) == 1) {
    const std::scoped_lock lock{described_mutex_};
    described_.clear();
  }
  return all;
}

std::vector<process_info> kernel::snapshot() {
  return look_at_all(1, std::min(slots_used_.load(std::memory_order_relaxed), table_size_));
}

std::optional<process_info> kernel::info(pid who) {
  if (!alive(who)) return std::nullopt;
  auto found = look_at_all(who.index(), who.index() + 1);
  if (found.empty() || found.front().id != who) return std::nullopt;
  return std::move(found.front());
}

runtime_counters kernel::counters() {
  runtime_counters all;
  scheduler_->count(all);
  all.spawned += spawned_outside_.load(std::memory_order_relaxed);
  all.ended += ended_outside_.load(std::memory_order_relaxed);
  all.dead_letters = dead_letters_.load(std::memory_order_relaxed);
  all.looked_ahead = looked_ahead_.load(std::memory_order_relaxed);
  all.timers = timers_->size();
  return all;
}

void kernel::count_outside(std::uint64_t spawned, std::uint64_t ended) noexcept {
  spawned_outside_.fetch_add(spawned, std::memory_order_relaxed);
  ended_outside_.fetch_add(ended, std::memory_order_relaxed);
}

void kernel::report_stall(slot& p, std::chrono::milliseconds lasting) {
  if (!p.is(slot::has_process)) return;  // it was abandoned, and that was reported
  const process_info who = describe(p, view::from_outside);
  log(log_level::warning, "process holds its worker; the others go on without it",
      {{"pid", to_string(who.id)}, {"name", who.name}, {"label", who.label}, {"ms", std::to_string(lasting.count())}});
  events_->publish(process_stalled{who.id, who.name, who.label, lasting});
}

void kernel::report_left_behind() {
  bool known = false;
  for (std::uint32_t i = 1; i < std::min(slots_used_.load(), table_size_); ++i) {
    if (!table_[i].is(slot::has_process) || !scheduler_->is_running(table_[i])) continue;
    const process_info who = describe(table_[i], view::from_outside);
    log(log_level::error, "the runtime ends while a process is stuck in its code; its thread is left behind",
        {{"pid", to_string(who.id)}, {"name", who.name}, {"label", who.label}});
    known = true;
  }
  if (!known) log(log_level::error, "the runtime ends while a process is stuck at its end; its thread is left behind");
}

void kernel::log(log_level level, std::string_view text, std::span<const log_field> fields) {
  if (!logs(level)) return;
  options_.log->write({.level = level, .at = env_->clock().wall(), .text = text, .fields = fields});
}

void kernel::log_throttled(flood what, log_level level, std::string_view text,
                           std::initializer_list<log_field> fields) {
  if (!logs(level)) return;
  constexpr std::uint64_t most = 10;
  throttle& mine = floods_.at(std::to_underlying(what));
  std::uint64_t left_out = 0;
  {
    const std::scoped_lock lock{mine.mutex};
    const time_point at = now();
    if (at - mine.since >= std::chrono::seconds{1}) {
      left_out = mine.reports > most ? mine.reports - most : 0;
      mine.since = at;
      mine.reports = 0;
    }
    if (++mine.reports > most) return;
  }
  if (left_out != 0) log(level, text, {{"and_before", std::to_string(left_out) + " more that were not logged"}});
  log(level, text, fields);
}

// ---- the end

bool kernel::stop() {
  stopping_ = true;
  const time_point deadline = now() + options_.stop_within;
  std::atomic<std::uint32_t> never{0};
  for (std::chrono::milliseconds pause{1};; pause = std::min(pause * 2, std::chrono::milliseconds{32})) {
    std::uint32_t alive = 0;
    const std::uint32_t used = std::min(slots_used_.load(), table_size_);
    for (std::uint32_t i = 1; i < used; ++i) {
      if (!table_[i].is(slot::has_process)) continue;
      ++alive;
      send_exit(pid_of(table_[i]), {.from = pid{}, .reason = exit_reason::kill()});
    }
    if (alive == 0 || now() >= deadline) break;
    env_->threads()->wait(never, 0, std::min(deadline, now() + pause));
  }
  return scheduler_->stop(deadline);
}

void kernel::send_late(pid to, signal s, envelope* e) {
  const std::scoped_lock lock{late_mutex_};
  if (crashed_)
    discard(*this, e);
  else
    send(to, s, e);
}

void kernel::crash() {
  {
    const std::scoped_lock lock{late_mutex_};
    crashed_ = true;
  }
  timers_->drop_all();
  const std::uint32_t used = std::min(slots_used_.load(), table_size_);
  turn last{.k = this};
  turn* before = std::exchange(current_turn, &last);
  for (std::uint32_t i = 1; i < used; ++i) {
    slot& p = table_[i];
    if (p.process == nullptr) continue;
    last.p = &p;
    finish(p, exit_reason::killed(), p.process, nullptr);
  }
  flush_burst(last);
  current_turn = before;
  // What the frames sent while they went down, and answers to requests dropped here, are mail again: until all is
  // quiet.
  for (bool again = true; again;) {
    again = false;
    for (std::uint32_t i = 1; i < used; ++i) {
      mailbox& mail = table_[i].mail;
      if (mail.tail.load() == nullptr) continue;
      again = true;
      envelope* e = mail.head;
      mail.tail = nullptr;
      mail.head = nullptr;
      while (e != nullptr) {
        envelope* n = e->next.load();
        if (e->what() == signal::done)
          release(e);
        else
          discard(*this, e);
        e = n;
      }
    }
  }
  timers_->drop_all();
}

}  // namespace detail

// ---- logging

std::string_view to_string(log_level level) noexcept {
  switch (level) {
    case log_level::debug: return "debug";
    case log_level::info: return "info";
    case log_level::warning: return "warning";
    case log_level::error: return "error";
    case log_level::off: return "off";
  }
  return "unknown";
}

namespace {

std::string timestamp(wall_time at) {
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{std::chrono::floor<std::chrono::milliseconds>(at - day)};
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", int{date.year()},
                unsigned{date.month()}, unsigned{date.day()}, static_cast<int>(time.hours().count()),
                static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()),
                static_cast<int>(time.subseconds().count()));
  return text.data();
}

/// A record is one line, whatever it says: nothing in it may look like another record or field.
void append_escaped(std::string& line, std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (code < 0x20 || code == 0x7f) {
      line.append("\\x").append(1, digits[code >> 4U]).append(1, digits[code & 15U]);
    } else {
      if (c == '\\' || c == '"') line += '\\';
      line += c;
    }
  }
}
void append_value(std::string& line, std::string_view value) {
  const bool plain = value.find_first_of(" =\"\\") == std::string_view::npos;
  if (!plain) line += '"';
  append_escaped(line, value);
  if (!plain) line += '"';
}

class stderr_log final : public log_sink {
 public:
  void write(const log_record& record) override {
    std::string line = timestamp(record.at);
    line.append(" ").append(to_string(record.level)).append("  ");
    append_escaped(line, record.text);
    for (const log_field& f : record.fields) {
      if (f.value.empty()) continue;
      line.append("  ").append(f.key).append("=");
      append_value(line, f.value);
    }
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), stderr);  // one call, so that lines of several threads do not mix
  }
};

}  // namespace

std::shared_ptr<log_sink> stderr_sink() { return std::make_shared<stderr_log>(); }

}  // namespace coppice
