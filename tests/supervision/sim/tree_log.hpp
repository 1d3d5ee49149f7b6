#pragma once
/// What a run leaves: who was to be what, who started whom and when, what supervisors said, what they were asked.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <coppice/supervision/supervisor.hpp>

#include "freezes.hpp"
#include "seeds.hpp"

namespace coppice::random_trees {

using namespace std::chrono_literals;
using event = supervisor_event::kind;

/// A member of the tree as it was planned. The id is unique in the whole tree.
struct plant {
  enum class kind : std::uint8_t { server, body, own_start, supervisor };
  kind what = kind::server;
  std::string id;
  child_options how{};  // without id and name
  bool named = false;
  bool traps = false;
  std::chrono::nanoseconds lingers{0};  // when told to end
  bool ignores_exits = false;           // a body that traps and does not care: only a kill ends it
  // A supervisor:
  supervisor_spec flags{};  // without children
  std::vector<std::shared_ptr<const plant>> children{};
};
using plan = std::shared_ptr<const plant>;

/// One start of a member, and what is known of the process.
struct attempt {
  pid sup;
  plan what;
  pid who{};  // nobody: it could not be spawned
  enum class word : std::uint8_t { none, ready, ignore, fail } said = word::none;
  bool started = false;     // its supervisor said so
  bool overlapped = false;  // another process of that child was alive then
  bool unlinked = false;
  bool stuck = false;
  bool killed = false;  // by the test, or told to say so
  std::optional<exit_reason> end{};
  time_point ended{};
  std::shared_ptr<const supervisor_spec> spec{};  // of a supervisor that got so far
};

/// It had no time to do anything about it.
inline bool violent(const exit_reason& why) {
  return why.what() == exit_reason::kind::killed || why.what() == exit_reason::kind::abandoned;
}

enum class ask : std::uint8_t {
  start_child,
  terminate_child,
  restart_child,
  delete_child,
  retry_now,
  which_children,
  which_child,
  count_children,
  get_childspec,
  history,
  upgrade,
};

struct row {
  std::string id;
  pid who;
  child_state state = child_state::undefined;
  friend bool operator==(const row&, const row&) = default;
};
/// What a supervisor answered, or should have.
struct answer {
  std::optional<error_code> failed{};
  bool any_error = false;  // as an expectation: some error
  pid who{};
  std::vector<row> rows{};
  child_counts counts{};
  friend bool operator==(const answer&, const answer&) = default;
};
struct call {
  ask what = ask::count_children;
  pid sup;
  std::string id{};
  std::shared_ptr<const child_spec> spec{};
  std::shared_ptr<const supervisor_spec> tree{};
  bool sent = false;
  std::optional<answer> got{};
};

struct entry {
  enum class kind : std::uint8_t {
    begin,     ///< `sup` begins to start child `id`; `number` is the attempt
    told,      ///< `sup` said `said` of child `id`, process `who`
    sent,      ///< call `number`, to `sup`
    answered,  ///< call `number`, by `sup`
    ended,     ///< process `who`
    quiet,     ///< nothing is left to do for anybody; `alive` are the members that live
  };
  kind what = kind::quiet;
  time_point at{};
  pid sup{};
  std::string id{};
  pid who{};
  std::size_t number = 0;
  event said = event::started;
  exit_reason reason{};
  bool still_alive = false;  // `who`, when it was said
  std::shared_ptr<const std::set<pid>> alive{};
};

using seeds::mark;

class program {
 public:
  explicit program(sim::world& w) : world{w}, dice{w.chance()} {}
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  sim::world& world;
  sim::dice& dice;
  runtime* rt = nullptr;
  std::vector<entry> log;
  std::vector<attempt> attempts;
  std::vector<call> calls;
  std::map<pid, std::size_t> by_pid;
  std::map<pid, std::vector<supervisor_event>> published;
  random_freezes freezes;
  double weather = 0;  // the share of starts that do not go well
  bool calm = false;   // no more of that

  void write(entry e) {
    e.at = world.now();
    log.push_back(std::move(e));
  }
  /// A supervisor begins to start a child.
  std::size_t begin(pid sup, const plan& what) {
    const std::size_t n = attempts.size();
    const auto older = newest_.find({sup, what->id});
    const bool overlapped = older != newest_.end() && rt->alive(attempts[older->second].who);
    attempts.push_back({.sup = sup, .what = what, .overlapped = overlapped});
    newest_[{sup, what->id}] = n;
    write({.what = entry::kind::begin, .sup = sup, .id = what->id, .number = n});
    return n;
  }
  void spawned(std::size_t n, pid who) {
    attempts[n].who = who;
    by_pid[who] = n;
    names_[to_string(who)] = who;
  }
  [[nodiscard]] attempt* find(pid who) {
    const auto found = by_pid.find(who);
    return found == by_pid.end() ? nullptr : &attempts[found->second];
  }
  [[nodiscard]] const attempt* find(pid who) const {
    const auto found = by_pid.find(who);
    return found == by_pid.end() ? nullptr : &attempts[found->second];
  }
  [[nodiscard]] pid named(const std::string& text) const {
    const auto found = names_.find(text);
    return found == names_.end() ? pid{} : found->second;
  }
  /// Members that live, of the newest ones first.
  [[nodiscard]] std::vector<pid> living(bool supervisors, bool others) const {
    std::vector<pid> all;
    for (auto a = attempts.rbegin(); a != attempts.rend(); ++a) {
      const bool is_one = a->what->what == plant::kind::supervisor;
      if ((is_one ? supervisors : others) && a->who && rt->alive(a->who)) all.push_back(a->who);
    }
    return all;
  }

 private:
  std::map<std::pair<pid, std::string>, std::size_t> newest_;
  std::map<std::string, pid> names_;
};

/// What supervisors log is written down at once, with the time. It is the same that they publish.
class log_of_events final : public log_sink {
 public:
  explicit log_of_events(program& p) : program_{p} {}
  void write(const log_record& record) override {
    std::map<std::string_view, std::string> fields;
    for (const log_field& f : record.fields) fields[f.key] = f.value;
    if (!fields.contains("event")) return;
    entry e{.what = entry::kind::told,
            .sup = program_.named(fields["supervisor"]),
            .id = fields["child"],
            .who = program_.named(fields["pid"])};
    for (const event kind : {event::started, event::start_failed, event::exited, event::stopped, event::restarted,
                             event::delayed, event::abandoned, event::gave_up, event::shut_down})
      if (to_string(kind) == fields["event"]) e.said = kind;
    if (e.said == event::started || e.said == event::restarted)
      if (attempt* a = program_.find(e.who)) a->started = true;
    e.still_alive = e.who && program_.rt->alive(e.who);
    program_.write(std::move(e));
  }

 private:
  program& program_;
};

}  // namespace coppice::random_trees
