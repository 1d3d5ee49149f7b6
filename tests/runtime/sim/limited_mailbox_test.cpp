// Processes of all kinds with limited mailboxes among others, over many seeds: nothing is lost without a trace, no
// mailbox holds more than its limit, and the messages of one sender keep their order.
#include <gtest/gtest.h>

#include <map>

#include "seeds.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

constexpr std::uint64_t seed_count = 300;
constexpr int senders = 4;
constexpr int letters = 12;

struct letter_from {
  int sender = 0;
  int number = 0;
};
struct other_letter {
  int sender = 0;
  int number = 0;
};
struct reads {
  std::map<int, int> last;  // by sender
  std::uint64_t received = 0;
  bool in_order = true;
  void add(int sender, int number) {
    ++received;
    if (number <= last[sender]) in_order = false;
    last[sender] = number;
  }
};

/// Mostly waits for the other kind of letter than it gets.
task<> selective_reader(self& me, reads* into, bool all_in_order) {
  for (;;) {
    if (all_in_order) {
      const auto m = co_await me.receive<letter_from, other_letter>();
      std::visit([&](const auto& one) { into->add(one.sender, one.number); }, m);
      continue;
    }
    const auto other = co_await me.receive<other_letter>(5ms);
    if (const auto* one = std::get_if<other_letter>(&other)) into->add(one->sender + senders, one->number);
    const auto usual = co_await me.receive<letter_from>(0s);
    if (const auto* one = std::get_if<letter_from>(&usual)) into->add(one->sender, one->number);
  }
}
class reader {
 public:
  using protocol = coppice::protocol<letter_from, other_letter>;
  explicit reader(reads* into) : into_{into} {}
  void handle(letter_from m) { into_->add(m.sender, m.number); }
  void handle(other_letter m) { into_->add(m.sender, m.number); }

 private:
  reads* into_;
};
class slow_reader {
 public:
  using protocol = coppice::protocol<letter_from, other_letter>;
  explicit slow_reader(reads* into) : into_{into} {}
  task<void> handle(letter_from m, self& me) {
    into_->add(m.sender, m.number);
    co_await me.sleep(1ms);
  }
  void handle(other_letter m) { into_->add(m.sender, m.number); }

 private:
  reads* into_;
};

task<> sends(self& me, pid to, int who, sim::dice* d) {
  for (int i = 1; i <= letters; ++i) {
    if (d->chance(0.5)) co_await me.sleep(d->between(1ns, 3ms));
    if (d->chance(0.3))
      me.send(to, other_letter{who, i});
    else
      me.send(to, letter_from{who, i});
  }
}

void play(sim::world& w) {
  sim::node& n = w.add_node("readers", {.processes = 1U << 8U, .level = log_level::off});
  runtime& rt = n.rt();
  sim::dice& d = w.chance();
  const std::size_t limit = 1 + d.below(5);
  const spawn_options options{
      .mailbox = {.capacity = limit, .when_full = d.chance(0.5) ? when_full::drop_oldest : when_full::drop_newest}};
  reads all;
  pid who;
  switch (d.below(4)) {
    case 0: who = *rt.spawn(options, selective_reader, &all, false); break;
    case 1: who = *rt.spawn(options, selective_reader, &all, true); break;
    case 2: who = rt.spawn<reader>(options, &all)->id(); break;
    default: who = rt.spawn<slow_reader>(options, &all)->id(); break;
  }
  for (int i = 0; i < senders; ++i) rt.spawn(sends, who, i, &d);
  if (d.chance(0.3)) n.stick(who, 5ms);
  const bool killed = d.chance(0.3);
  for (int i = 0; i < 60; ++i) {
    w.run_for(d.between(0ns, 1ms));
    const auto seen = rt.info(who);
    // A message may be taken while it makes room for another, and then be put aside.
    if (seen) sim::require(seen->mailbox <= limit + 1, "more messages wait than the limit allows");
    if (killed && i == 30) rt.kill(who);
  }
  w.run_for(1s);
  sim::require(all.in_order, "the messages of a sender changed their order");
  sim::require(rt.alive(who) != killed, "it has ended, or was not killed");
  const std::uint64_t waiting = killed ? 0 : rt.info(who)->mailbox;
  sim::require(all.received + rt.counters().dead_letters + waiting == std::uint64_t{senders * letters},
               std::to_string(all.received) + " were received, " + std::to_string(rt.counters().dead_letters) +
                   " were dead letters, " + std::to_string(waiting) + " wait");
}

TEST(limited_mailbox, loses_no_message_without_a_trace_and_keeps_its_limit) { seeds::hold(seed_count, play); }

}  // namespace
