#pragma once
/// One supervisor as the reference describes it: its children, its restarts, and what it has to do next.
/// Written from the reference, not from the code.
#include <algorithm>
#include <deque>

#include "tree_people.hpp"

namespace coppice::random_trees {

struct kid {
  /// following: started again together with the sibling `leader`, which waits
  enum class status : std::uint8_t { running, down, waiting, retrying, following };
  std::size_t number = 0;
  std::shared_ptr<const child_spec> spec;
  status is = status::down;
  pid who{};
  time_point since{};
  bool ran = false;
  unsigned failures = 0;  // in a row
  time_point due_low{};   // when a wait is over: chance may be part of it
  time_point due_high{};
  std::vector<std::size_t> retries{};  // on their way; each behind so many calls
  std::size_t leader = 0;              // while it is following

  void follow(std::size_t whom) {
    is = status::following;
    leader = whom;
  }
  void go_down() {
    is = status::down;
    leader = 0;
  }
  [[nodiscard]] bool temporary() const { return spec->restart == restart::temporary; }
  [[nodiscard]] child_state state() const {
    if (is == status::running) return child_state::running;
    return is == status::down ? child_state::undefined : child_state::restarting;
  }
  friend bool operator==(const kid&, const kid&) = default;
};

/// What a supervisor does next; it does nothing else meanwhile.
struct step {
  enum class kind : std::uint8_t {
    stop,
    forget,
    start,
    starting,  ///< it has begun
    say,       ///< an event
    reply,
  };
  enum class why : std::uint8_t { first, again, add, by_hand };
  kind what = kind::stop;
  std::size_t child = 0;
  why because = why::first;
  event says = event::started;
  std::size_t number = 0;  // of the attempt
  std::optional<std::size_t> call{};
  answer with{};
  std::size_t leader = 0;       // of a stop: the child follows this one then
  bool tells_of_start = false;  // of a reply: an error if a start before it has failed
  friend bool operator==(const step&, const step&) = default;
};

/// When something was done: not always known exactly.
struct moment {
  time_point low;
  time_point high;
  friend bool operator==(const moment&, const moment&) = default;
};

struct state {
  std::vector<kid> kids{};
  std::shared_ptr<const supervisor_spec> flags;
  std::vector<moment> restarts{};
  std::deque<step> todo{};
  std::size_t numbers = 0;
  std::size_t calls = 0;                                  // served
  std::vector<std::pair<std::size_t, answer>> replies{};  // not received yet
  time_point last{};                                      // that something was seen of it
  bool starts = false;                                    // and that was the beginning of a start
  enum class end : std::uint8_t { no, told, own, no_start } ends = end::no;
  friend bool operator==(const state&, const state&) = default;

  /// Equal for equal states, and different for nearly all others: there may be tens of thousands to compare.
  [[nodiscard]] std::uint64_t digest() const {
    std::uint64_t all = mix(calls) ^ mix(numbers + (todo.size() << 32U));
    const auto add = [&](auto number) { all = mix(all ^ static_cast<std::uint64_t>(number)); };
    for (const kid& k : kids) {
      add(k.number);
      add(k.is);
      add(std::hash<pid>{}(k.who));
      add(k.since.time_since_epoch().count());
      add(k.failures);
      add(k.leader);
      for (const std::size_t behind : k.retries) add(behind);
    }
    for (const moment& m : restarts) add(m.high.time_since_epoch().count());
    for (const step& s : todo) add(s.child + (static_cast<std::size_t>(s.what) << 32U));
    for (const auto& [number, what] : replies) add(number);
    return all;
  }
  [[nodiscard]] bool idle() const { return todo.empty() && ends == end::no; }
  [[nodiscard]] kid& at(std::size_t number) {
    return *std::ranges::find_if(kids, [&](const kid& k) { return k.number == number; });
  }
  [[nodiscard]] kid* find(std::string_view id) {
    const auto found = std::ranges::find_if(kids, [&](const kid& k) { return k.spec->id == id; });
    return found == kids.end() ? nullptr : &*found;
  }
  kid& add(const child_spec& spec) {
    kids.push_back({.number = ++numbers, .spec = std::make_shared<const child_spec>(spec)});
    return kids.back();
  }
  void forget(std::size_t number) {
    std::erase_if(kids, [&](const kid& k) { return k.number == number; });
  }
  /// What can't be seen from outside is done at once.
  void go_on() {
    for (; !todo.empty(); todo.pop_front()) {
      const step& next = todo.front();
      if (next.what == step::kind::forget)
        forget(next.child);
      else if (next.what == step::kind::reply)
        replies.emplace_back(*next.call, next.with);
      else
        break;
    }
  }
};

/// Stops the running children in reverse order.
inline void stop_all(state& s) {
  for (auto k = s.kids.rbegin(); k != s.kids.rend(); ++k)
    if (k->is == kid::status::running) s.todo.push_back({.what = step::kind::stop, .child = k->number});
}

/// The first of the children that are restarted together with this one.
inline std::size_t first_of_group(const state& s, std::size_t number) {
  if (s.flags->strategy == strategy::one_for_all) return 0;
  const auto found = std::ranges::find_if(s.kids, [&](const kid& k) { return k.number == number; });
  return static_cast<std::size_t>(found - s.kids.begin());
}

/// Stops the group in reverse order; temporary children are removed. If the child waits, those that were not down
/// follow it. Children outside of the group that follow one of the group follow this child.
inline void stop_group(state& s, std::size_t number) {
  const bool alone = s.flags->strategy == strategy::one_for_one;
  const bool waits = s.at(number).is == kid::status::waiting;
  const std::size_t first = first_of_group(s, number);
  for (kid& k : s.kids) {
    if (k.is != kid::status::following) continue;
    for (std::size_t i = first; i < s.kids.size(); ++i)
      if (s.kids[i].number == k.leader && (!alone || k.leader == number)) {
        k.leader = number;
        if (&k < &s.kids[first]) mark("a child follows one of another group");
        break;
      }
  }
  if (alone) return;
  for (std::size_t i = s.kids.size(); i-- > first;) {
    kid& k = s.kids[i];
    if (k.number == number) continue;
    if (k.is == kid::status::running)
      s.todo.push_back({.what = step::kind::stop, .child = k.number, .leader = waits ? number : 0});
    else if (waits && k.is != kid::status::down)
      k.follow(number);
    else
      k.go_down();  // it does not wait any more
    if (k.temporary()) s.todo.push_back({.what = step::kind::forget, .child = k.number});
  }
}

/// When a child in front of it fails to start, it is down like the others, and the retry belongs to that child.
inline void restart_group(state& s, std::size_t number) {
  s.at(number).go_down();
  stop_group(s, number);
  const bool alone = s.flags->strategy == strategy::one_for_one;
  const std::size_t first = first_of_group(s, number);
  for (std::size_t i = 0; i < s.kids.size(); ++i) {
    kid& k = s.kids[i];
    const bool follows = k.is == kid::status::following && k.leader == number;
    const bool in_group = i >= first && !alone && !k.temporary();
    if (k.number != number && !follows && !in_group) continue;
    if (follows) k.go_down();
    s.todo.push_back({.what = step::kind::start, .child = k.number, .because = step::why::again});
  }
}

/// The child will not be restarted: those that follow it are started without it.
inline void start_followers(state& s, std::size_t number) {
  for (kid& k : s.kids) {
    if (k.is != kid::status::following || k.leader != number) continue;
    mark("started without the child it followed");
    k.go_down();
    s.todo.push_back({.what = step::kind::start, .child = k.number, .because = step::why::again});
  }
}

struct may_and_must_not {
  bool may;
  bool must_not;
};
/// The window is exact: restart number `limit + 1` within the time is refused.
inline may_and_must_not one_more(const state& s, moment now) {
  const auto limit = static_cast<std::size_t>(s.flags->limit.restarts);
  std::size_t surely = 0;
  std::size_t perhaps = 0;
  for (const moment& m : s.restarts) {
    if (now.high - m.low <= s.flags->limit.within) ++surely;
    if (now.low - m.high <= s.flags->limit.within) ++perhaps;
  }
  if (surely != perhaps) mark("a restart at the edge of the window");
  return {.may = surely + 1 <= limit, .must_not = perhaps + 1 > limit};
}

/// The limit is reached. The child stays down, the others are stopped, and it ends.
inline void give_up(state& s, std::size_t number) {
  mark("gave up");
  s.at(number).is = kid::status::down;
  s.ends = state::end::own;
  std::deque<step> replies = std::exchange(s.todo, {});
  s.todo.push_back({.what = step::kind::say, .child = number, .says = event::gave_up});
  stop_all(s);
  std::ranges::copy_if(replies, std::back_inserter(s.todo), [](const step& x) { return x.what == step::kind::reply; });
}

/// The wait before the restart after so many failures.
inline std::chrono::nanoseconds plain_wait(const backoff& b, unsigned failures) {
  std::chrono::nanoseconds wait = b.first;
  std::chrono::nanoseconds before{0};
  for (unsigned i = 1; i < failures && wait < b.cap; ++i) {
    const auto now = wait;
    switch (b.curve) {
      case backoff_curve::constant: break;
      case backoff_curve::linear: wait += b.first; break;
      case backoff_curve::exponential: wait *= 2; break;
      case backoff_curve::fibonacci: wait += before.count() == 0 ? b.first : before; break;
    }
    before = now;
  }
  return std::min(wait, b.cap);
}

inline void wait_for_restart(state& s, std::size_t number, time_point now) {
  mark("waits for its restart");
  kid& k = s.at(number);
  const backoff& b = *k.spec->backoff;
  const auto wait = static_cast<double>(plain_wait(b, ++k.failures).count());
  const auto part = [&](double share) { return std::chrono::nanoseconds{static_cast<std::int64_t>(wait * share)}; };
  k.is = kid::status::waiting;
  k.due_low = now + part(1 - b.jitter) - 1us;
  k.due_high = now + std::min(part(1 + b.jitter), b.cap) + 1us;
}

/// Restarts need one more of the limit first. What may be, since the time is not always known exactly.
template <class Then>
void with_one_more(const state& s, std::size_t number, moment now, std::vector<state>& into, Then then) {
  const may_and_must_not verdict = one_more(s, now);
  if (verdict.may) {
    state next = s;
    next.restarts.push_back(now);
    then(next);
    next.go_on();
    into.push_back(std::move(next));
  }
  if (verdict.must_not) {
    state next = s;
    give_up(next, number);
    into.push_back(std::move(next));
  }
}

/// A child has ended by itself.
inline void child_ends(state s, std::size_t number, const exit_reason& why, time_point now, std::vector<state>& into) {
  kid& k = s.at(number);
  const bool abnormal = why.what() != exit_reason::kind::normal && why.what() != exit_reason::kind::shutdown;
  const restart how = k.spec->restart;
  k.is = kid::status::down;
  if (how == restart::permanent || (how == restart::transient && abnormal)) {
    if (k.spec->backoff && now - k.since >= k.spec->backoff->reset_after) k.failures = 0;
    const bool waits = k.spec->backoff.has_value();
    return with_one_more(s, number, {now, now}, into, [&](state& next) {
      if (!waits) return restart_group(next, number);
      wait_for_restart(next, number, now);
      next.todo.push_back({.what = step::kind::say, .child = number, .says = event::delayed});
      stop_group(next, number);
    });
  }
  const bool significant = k.spec->significant;
  if (how == restart::temporary) s.forget(number);
  const bool others =
      std::ranges::any_of(s.kids, [](const kid& o) { return o.spec->significant && o.is != kid::status::down; });
  const auto when = s.flags->auto_shutdown;
  if (significant && (when == auto_shutdown::any_significant || (when == auto_shutdown::all_significant && !others))) {
    mark(others ? "shut down by any" : "shut down by the last");
    s.ends = state::end::own;
    s.todo.push_back({.what = step::kind::say, .child = number, .says = event::shut_down});
    stop_all(s);
  }
  into.push_back(std::move(s));
}

/// The start at the head of the list has failed. `calls`: how many were made by now.
inline void start_fails(state s, time_point now, std::size_t calls, std::vector<state>& into) {
  const step failed = s.todo.front();
  s.todo.pop_front();
  kid& k = s.at(failed.child);
  switch (failed.because) {
    case step::why::first:
      mark("a first start failed");
      s.todo.clear();
      s.ends = state::end::no_start;
      stop_all(s);
      into.push_back(std::move(s));
      return;
    case step::why::add:
    case step::why::by_hand:
      if (failed.because == step::why::add) s.forget(failed.child);
      s.replies.emplace_back(*failed.call, answer{.any_error = true});
      s.go_on();
      into.push_back(std::move(s));
      return;
    case step::why::again: break;
  }
  for (step& x : s.todo)
    if (x.tells_of_start) x.with.any_error = true;
  std::vector<std::size_t> behind;
  if (s.flags->strategy != strategy::one_for_one)
    std::erase_if(s.todo, [&](const step& x) {
      if (x.what == step::kind::start) behind.push_back(x.child);
      return x.what == step::kind::start;
    });
  if (!behind.empty()) mark("a group was restarted in part");
  if (k.spec->backoff)
    return with_one_more(s, failed.child, {now, now}, into, [&](state& next) {
      wait_for_restart(next, failed.child, now);
      for (const std::size_t each : behind) next.at(each).follow(failed.child);
      next.todo.push_front({.what = step::kind::say, .child = failed.child, .says = event::delayed});
    });
  k.is = kid::status::retrying;
  k.retries.push_back(calls);
  s.go_on();
  into.push_back(std::move(s));
}

/// The child stays down; a temporary child is removed, whoever started it.
inline void start_is_ignored(state s, std::vector<state>& into) {
  mark("ignored");
  const step done = s.todo.front();
  s.todo.pop_front();
  kid& k = s.at(done.child);
  k.is = kid::status::down;
  if (done.call && done.because != step::why::again) s.replies.emplace_back(*done.call, answer{});
  if (k.temporary()) s.forget(done.child);
  s.go_on();
  into.push_back(std::move(s));
}

}  // namespace coppice::random_trees
