#pragma once
/// What a run of random actors leaves: who was spawned by whom, which hooks of each instance ran, what was decided,
/// and where the mail went.
#include <charconv>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <coppice/actor/actor.hpp>

#include "freezes.hpp"
#include "seeds.hpp"

namespace coppice::random_actors {

using namespace actor;
using namespace std::chrono_literals;

/// How failures are answered, as the plan has it.
struct rules {
  enum class kind : std::uint8_t { one, all, backing_off, always_restart, always_stop, custom };
  kind what = kind::one;
  bool asks = false;  // one and all: a decider
  bool all = false;   // custom: sometimes
  restart_limit limit{.restarts = 10, .within = 10s};
  std::optional<backoff> wait{};
  std::array<std::uint64_t, 4> weights{1, 1, 1, 1};  // by directive
  [[nodiscard]] bool has_words() const { return kind::custom == what || asks; }
  [[nodiscard]] bool may_hit_siblings() const { return what == kind::all || (what == kind::custom && all); }
};

/// An actor as it was planned.
struct plant {
  rules strategy{};
  std::optional<rules> guardian{};
  actor::mailbox mailbox{};
  bool keeps_children = false;
  bool decides = false;  // by a member of its class
  bool middleware = false;
  std::vector<std::shared_ptr<const plant>> children{};
  [[nodiscard]] bool has_policy() const { return mailbox.capacity != 0 || mailbox.by_priority; }
};
using plan = std::shared_ptr<const plant>;

struct entry {
  enum class kind : std::uint8_t { attempt, born, started, restarting, stopping, stopped, destroyed };
  kind what;
  time_point at;
  exit_reason reason{};
};

/// A message, by its sender and its number.
struct letter_key {
  pid from;
  std::uint64_t number;
  friend auto operator<=>(const letter_key&, const letter_key&) = default;
};
struct mail {
  std::map<pid, std::uint64_t> sent_by;
  std::map<std::pair<pid, int>, std::uint64_t> last_seen;  // by sender and priority, where that matters
  std::map<pid, std::uint64_t> seen_of;
  std::deque<letter_key> front;  // what comes next, when that is known
  std::deque<letter_key> stash;
  std::uint64_t sent = 0;
  std::uint64_t consumed = 0;
  std::uint64_t dead = 0;
};

/// One actor, over all its instances.
struct life {
  pid parent;
  plan what;
  time_point spawned{};
  std::vector<pid> children{};
  std::vector<entry> log{};
  std::uint64_t attempts = 0;
  std::uint64_t living = 0;  // the number of the instance; 0: none
  std::optional<exit_reason> end{};
  time_point ended{};
  bool killed = false;
  bool told = false;  // to stop, by somebody, or by itself
  std::set<pid> watching{};
  mail letters{};
  std::uint64_t probed = 0;
};

/// A failure that the test has caused.
struct fault {
  pid who;
  std::uint64_t instance = 0;  // that failed; of a constructor, the attempt
  bool made = true;
  bool quiet = false;  // in a hook where it changes nothing
  time_point at{};
};

struct verdict {
  time_point at;
  pid parent;
  pid child;
  std::uint64_t id = 0;
  directive what = directive::restart;
  std::chrono::nanoseconds after{0};
};
/// What a decider returned.
struct word {
  judgement said;
  std::size_t restarts = 0;
  time_point at{};
};
/// A turn takes 100 ns: a decision is carried out a few turns later.
inline constexpr std::chrono::nanoseconds soon = 1ms;

using seeds::mark;

/// The number of the failure that a reason is about; 0: of none.
inline std::uint64_t id_of(const exit_reason& why) {
  const std::string_view text = why.text();
  std::uint64_t id = 0;
  if (text.starts_with('f')) std::from_chars(text.data() + 1, text.data() + text.size(), id);
  return id;
}

class program {
 public:
  explicit program(sim::world& w) : world{w}, dice{w.chance()} {}
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  sim::world& world;
  sim::dice& dice;
  runtime* rt = nullptr;
  bool calm = false;            // no more faults
  double hook_failures = 0.05;  // the share of hooks that fail
  std::uint64_t faults_left = 40;
  std::uint64_t spawns_left = 40;
  std::uint64_t chats_left = 200;
  std::map<pid, life> lives;
  std::vector<pid> order;
  std::map<std::uint64_t, fault> faults;
  std::vector<verdict> verdicts;
  std::map<std::pair<pid, std::uint64_t>, word> words;
  std::set<std::pair<pid, std::uint64_t>> speechless;  // the decider failed over them
  struct question {
    pid who;
    std::uint64_t instance;
  };
  std::map<std::uint64_t, question> questions;  // that wait for their answer
  std::uint64_t numbers = 0;
  random_freezes freezes;

  /// Handlers must not throw what the test has found out: it would be one more failure.
  void check(bool holds, const std::string& what) {
    if (!holds && complaint_.empty()) complaint_ = what;
  }
  void judge() const { sim::require(complaint_.empty(), complaint_); }

  void spawned(pid who, pid parent, const plan& what) {
    lives[who] = {.parent = parent, .what = what, .spawned = world.now()};
    order.push_back(who);
    if (parent) lives[parent].children.push_back(who);
  }
  void write(pid who, entry::kind what, const exit_reason& why = {}) {
    lives.at(who).log.push_back({what, world.now(), why});
  }
  [[nodiscard]] pid someone() {
    if (order.empty()) return {};
    for (int tries = 0; tries < 4; ++tries) {
      const pid who = order[dice.below(order.size())];
      if (rt->alive(who)) return who;
    }
    return order[dice.below(order.size())];
  }
  /// The number of a new failure.
  [[nodiscard]] std::uint64_t fails(pid who, bool made, bool quiet) {
    if (faults_left > 0) --faults_left;
    const life& l = lives.at(who);
    faults[++numbers] = {
        .who = who, .instance = made ? l.living : l.attempts, .made = made, .quiet = quiet, .at = world.now()};
    return numbers;
  }
  [[nodiscard]] bool unlucky() { return !calm && faults_left > 0 && dice.chance(hook_failures); }

  // -- mail
  [[nodiscard]] std::uint64_t number_for(pid from, pid to) {
    mail& m = lives.at(to).letters;
    ++m.sent;
    return ++m.sent_by[from];
  }
  /// True: it has been seen before.
  bool present(pid to, const letter_key& key, int level) {
    life& l = lives.at(to);
    mail& m = l.letters;
    if (!m.front.empty()) {
      check(m.front.front() == key, "mail that was stashed is not what comes next: " + text(to, key));
      m.front.pop_front();
      return true;
    }
    std::uint64_t& last = m.last_seen[{key.from, l.what->mailbox.by_priority ? level : 0}];
    check(key.number > last, "mail out of order, or twice: " + text(to, key));
    check(l.what->has_policy() || key.number == last + 1, "mail was lost before " + text(to, key));
    last = key.number;
    ++m.seen_of[key.from];
    return false;
  }
  void unstash(pid who, std::size_t how_many) {
    mail& m = lives.at(who).letters;
    std::deque<letter_key> next;
    for (; how_many > 0 && !m.stash.empty(); --how_many) {
      next.push_back(m.stash.front());
      m.stash.pop_front();
    }
    m.front.insert(m.front.begin(), next.begin(), next.end());
  }
  [[nodiscard]] static std::string text(pid to, const letter_key& key) {
    return "letter " + std::to_string(key.number) + " of " + to_string(key.from) + " to " + to_string(to);
  }

 private:
  std::string complaint_;
};

}  // namespace coppice::random_actors
