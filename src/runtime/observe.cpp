// What can be seen from outside, and the end of a runtime.
#include <cstdio>

#include <coppice/runtime/detail/event_stream.hpp>
#include <coppice/runtime/detail/kernel.hpp>

#include "internal/here.hpp"
#include "internal/names.hpp"
#include "internal/remote_ties.hpp"
#include "internal/side_block.hpp"
#include "internal/timers.hpp"

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

// An idle process is taken over for a moment, a busy one is asked to count by itself and given a little time to.
void kernel::refresh_length(slot& p) {
  if (p.mail.tail.load(std::memory_order_relaxed) != nullptr) {
    p.urgent.fetch_or(look_for_length, std::memory_order_relaxed);
    return;
  }
  if (p.length.load(std::memory_order_relaxed) == 0) return;
  envelope mine{nullptr};
  if (!p.mail.claim(&mine)) return;
  p.length.store(p.process != nullptr ? p.process->type->held(*p.process) : 0, std::memory_order_relaxed);
  release_claim(p, mine);
}

process_info kernel::describe(std::uint32_t index) {
  slot& p = table_[index];
  process_info out;
  out.id = pid_of(p);
  out.traps_exits = p.is(slot::traps_exits);
  out.handled = p.handled.load(std::memory_order_relaxed);
  out.mailbox = p.length.load(std::memory_order_relaxed);
  out.memory = sizeof(slot) + std::size_t{16} * p.body_units.load(std::memory_order_relaxed);
  const auto age = env_->clock().coarse_now() - started_ -
                   std::chrono::milliseconds{100} * p.born_ds.load(std::memory_order_relaxed);
  out.age = std::max(std::chrono::duration_cast<std::chrono::milliseconds>(age), std::chrono::milliseconds{0});
  if (const std::uint32_t parent = p.parent_index.load(std::memory_order_relaxed); parent != 0) {
    out.parent = pid::from_parts(node_, parent, p.parent_serial.load(std::memory_order_relaxed));
    if (p.is(slot::parent_linked)) out.links.push_back(out.parent);
  }
  if (p.mail.tail.load(std::memory_order_relaxed) != nullptr)
    out.state = scheduler_->is_running(p) ? process_state::running : process_state::runnable;
  if (p.named.load(std::memory_order_relaxed) != 0) out.name = names_->of(out.id);
  if (side_block* side = p.side.load(std::memory_order_acquire)) {
    const std::scoped_lock lock{side->lock};
    if (side->owner != out.id) return out;  // it has ended under our eyes
    out.label = side->label;
    out.memory += side->bytes();
    out.monitors = static_cast<std::uint32_t>(side->monitors.size());
    out.monitored = static_cast<std::uint32_t>(side->watchers.size());
    side->links.for_each([&](pid other, std::uint64_t unlinking) {
      if (unlinking == 0) out.links.push_back(other);
    });
  }
  return out;
}

std::vector<process_info> kernel::snapshot() {
  const std::uint32_t used = std::min(slots_used_.load(std::memory_order_relaxed), table_size_);
  bool asked = false;
  for (std::uint32_t i = 1; i < used; ++i) {
    if (!table_[i].is(slot::has_process)) continue;
    refresh_length(table_[i]);
    asked |= table_[i].urgent.load(std::memory_order_relaxed) != 0;
  }
  if (asked && current_turn == nullptr && env_->threads() != nullptr) {
    std::atomic<std::uint32_t> never{0};
    env_->threads()->wait(never, 0, now() + std::chrono::milliseconds{2});
  }
  std::vector<process_info> all;
  for (std::uint32_t i = 1; i < used; ++i) {
    const std::uint64_t before = table_[i].tag_now();
    if ((before & slot::has_process) == 0) continue;
    process_info one = describe(i);
    if (table_[i].serial() == static_cast<std::uint32_t>(before >> 32U)) all.push_back(std::move(one));
  }
  return all;
}

std::optional<process_info> kernel::info(pid who) {
  if (!alive(who) || !table_[who.index()].is(slot::has_process)) return std::nullopt;
  refresh_length(table_[who.index()]);
  process_info one = describe(who.index());
  if (!alive(who)) return std::nullopt;
  return one;
}

runtime_counters kernel::counters() {
  runtime_counters all;
  scheduler_->count(all);
  all.spawned += spawned_outside_.load(std::memory_order_relaxed);
  all.ended += ended_outside_.load(std::memory_order_relaxed);
  all.handled += handled_outside_.load(std::memory_order_relaxed);
  all.dead_letters = dead_letters_.load(std::memory_order_relaxed);
  all.timers = timers_->size();
  return all;
}

void kernel::count_outside(std::uint64_t spawned, std::uint64_t ended, std::uint64_t handled) noexcept {
  spawned_outside_.fetch_add(spawned, std::memory_order_relaxed);
  ended_outside_.fetch_add(ended, std::memory_order_relaxed);
  handled_outside_.fetch_add(handled, std::memory_order_relaxed);
}

void kernel::report_stall(slot& p, std::chrono::milliseconds lasting) {
  const process_info who = describe(static_cast<std::uint32_t>(&p - table_));
  log(log_level::warning, "process holds its worker; the others go on without it",
      {{"pid", to_string(who.id)}, {"name", who.name}, {"label", who.label}, {"ms", std::to_string(lasting.count())}});
  events_->publish(process_stalled{who.id, who.name, who.label, lasting});
}

void kernel::log(log_level level, std::string_view text, std::initializer_list<log_field> fields) {
  if (level < options_.level || options_.level == log_level::off) return;
  options_.log->write(
      {.level = level, .at = env_->clock().wall(), .text = text, .fields = {fields.begin(), fields.size()}});
}

// ---- the end

bool kernel::stop() {
  stopping_ = true;
  const time_point deadline = now() + options_.stop_within;
  std::atomic<std::uint32_t> never{0};
  for (;;) {
    std::uint32_t alive = 0;
    const std::uint32_t used = std::min(slots_used_.load(), table_size_);
    for (std::uint32_t i = 1; i < used; ++i) {
      if (!table_[i].is(slot::has_process)) continue;
      ++alive;
      send_exit(pid_of(table_[i]), {.from = pid{}, .reason = exit_reason::kill()});
    }
    if (alive == 0 || now() >= deadline) break;
    env_->threads()->wait(never, 0, now() + std::chrono::milliseconds{1});
  }
  return scheduler_->stop();
}

void kernel::send_late(pid to, signal s, envelope* e) {
  const std::scoped_lock lock{late_mutex_};
  if (crashed_)
    discard(*this, e, exit_reason{});
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
  stall_guard guard;
  for (std::uint32_t i = 1; i < used; ++i) {
    slot& p = table_[i];
    if (p.process == nullptr) continue;
    turn t{.k = *this, .p = p, .guard = guard, .outer = current_turn};
    current_turn = &t;
    finish(p, exit_reason::killed(), p.process, nullptr);
    current_turn = t.outer;
  }
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
          discard(*this, e, exit_reason::noproc());
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

class stderr_log final : public log_sink {
 public:
  void write(const log_record& record) override {
    std::string line = timestamp(record.at);
    line.append(" ").append(to_string(record.level)).append("  ").append(record.text);
    for (const log_field& f : record.fields)
      if (!f.value.empty()) line.append("  ").append(f.key).append("=").append(f.value);
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), stderr);  // one call, so that lines of several threads do not mix
  }
};

}  // namespace

std::shared_ptr<log_sink> stderr_sink() { return std::make_shared<stderr_log>(); }

}  // namespace coppice
