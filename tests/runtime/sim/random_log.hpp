#pragma once
/// What happened in one run of a random program, in the order it happened. The simulation has one thread, so the order
/// is exact: an entry stands where its operation returned, or where its observation was made.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "seeds.hpp"

namespace coppice::random_programs {

enum class what : std::uint8_t {
  spawned,       // who: the parent, or nobody; other: the child; number: its monitor, or 0; flag: linked; name
  spawn_failed,  // who: the parent; code: 0 memory, 1 name taken
  own_end,       // who is about to end itself with reason; flag: by an exception, of which only the text counts
  gone,          // the body of who was destroyed
  ended,         // who ended with reason, as the event stream tells
  abandoned,     // who, by the world
  sent,          // who to other: the note `number` of this pair
  got,           // who from other: the note `number`
  linked,        // who to other; flag: it threw no_such_process
  unlinked,      // who from other
  told,          // who got `exited` from other with reason; flag: over a link
  monitored,     // who watches other as number
  demonitored,   // who, number; flag: with flush; code: the answer
  down,          // who was told of the end of other, number, reason
  trapped,       // who; flag: on
  exit_sent,     // who (or nobody) to other, with reason
  named,         // who asked for name for itself; code: 0 it has it, 1 taken, 2 it has one already
  unnamed,       // who took the name away from whoever had it; flag: the answer
  looked_up,     // who found other under name
  armed,         // who: a message `number` for other after `span` (send_after)
  rang,          // who got the message `number`
  timer,         // who: its timer `number` after `span` (start_timer)
  timed,         // who got the timeout of its timer `number`
  cancelled,     // who: the timer or message `number`; flag: the answer; code: 0 timer, 1 message
  waited,        // who: a receive or a sleep that should have lasted `span`, begun at `since`, ended by time
  called,        // who asks other, call `number`, for `span`
  call_over,     // who: call `number`; code: an errc, or `answered`; text: of the error
  took,          // who took the request `number`; code: the mode
  answered,      // somebody answered call `number`; flag: the answer was taken
  let_go,        // somebody dropped call `number` without an answer
  stray,         // who got a message that nobody sent: text says which
  cut,           // between here and there, this way
  healed,        // all cuts
  up,            // a node starts as here
  crashed,       // here
  pulse,         // the world sends `number` to whoever observes the nodes
  lost,          // here was told that there is lost, after the pulse `number`
  stalled,       // who, by the event stream
  quiet,         // nothing is left to happen
};

[[nodiscard]] inline std::string_view name_of(what kind) {
  static constexpr std::array<std::string_view, 39> names = {
      "spawned", "spawn_failed", "own_end",   "gone",      "ended",       "abandoned", "sent",    "got",
      "linked",  "unlinked",     "told",      "monitored", "demonitored", "down",      "trapped", "exit_sent",
      "named",   "unnamed",      "looked_up", "armed",     "rang",        "timer",     "timed",   "cancelled",
      "waited",  "called",       "call_over", "took",      "answered",    "let_go",    "stray",   "cut",
      "healed",  "up",           "crashed",   "pulse",     "lost",        "stalled",   "quiet"};
  return names.at(static_cast<std::size_t>(kind));
}

inline constexpr int answered_code = 100;  // beside the numbers of errc

enum class mode : std::uint8_t { at_once, later, by_another, drop, fail_in_it };

struct entry {
  what kind{};
  pid who{};
  pid other{};
  std::uint64_t number = 0;
  exit_reason reason{};
  bool flag = false;
  bool server = false;  // it was spawned as an object, linked
  bool full = false;    // an observation: the process would have taken any message
  int code = 0;
  int name = -1;
  std::chrono::nanoseconds span{0};
  time_point since{};
  node_id here{};
  node_id there{};
  std::string text{};
  time_point at{};
};

[[nodiscard]] inline std::string line_of(std::size_t index, const entry& e) {
  std::string out =
      "  #" + std::to_string(index) + " " + std::to_string(e.at.time_since_epoch().count() / 1000) + "us ";
  out += std::string{name_of(e.kind)} + " " + to_string(e.who);
  if (e.other) out += " " + to_string(e.other);
  if (e.number != 0) out += " n=" + std::to_string(e.number);
  if (e.reason != exit_reason{}) out += " (" + e.reason.to_string() + ")";
  if (e.flag) out += " flag";
  if (e.full) out += " full";
  if (e.code != 0) out += " code=" + std::to_string(e.code);
  if (e.name >= 0) out += " name" + std::to_string(e.name);
  if (e.span.count() != 0) out += " span=" + std::to_string(e.span.count());
  if (e.here) out += " here=" + std::to_string(e.here.value());
  if (e.there) out += " there=" + std::to_string(e.there.value());
  return e.text.empty() ? out : out + " " + e.text;
}

using seeds::mark;

}  // namespace coppice::random_programs
