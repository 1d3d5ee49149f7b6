#pragma once
/// The machines of a random program with waits: lanes, a journal on the disk; and the processes that wait there.
#include <array>
#include <stdexcept>
#include <variant>

#include "journal.hpp"
#include "random_waits.hpp"

namespace coppice::random_waits {

/// One node, over all its starts.
class machine {
 public:
  machine(play& shared, sim::node& on) : shared_{shared}, node_{on} {}

  /// After each start of the node: nothing that was confirmed may be lost, and nothing may come back that was given up.
  void begin();
  [[nodiscard]] sim::node& node() noexcept { return node_; }
  [[nodiscard]] lane& any_lane() { return *lanes_.at(shared_.dice.below(lanes_.size())); }
  [[nodiscard]] lane& journal_lane() { return *lanes_[0]; }
  /// Closes a lane, whose jobs are dropped, and opens another in its place.
  void replace_lane();
  /// A job of the journal's lane. Returns whether the numbers are safe.
  std::uint64_t add_numbers();
  [[nodiscard]] bool recovered() const noexcept { return recovered_; }
  [[nodiscard]] bool journal_works() const noexcept { return recovered_ && !failed_; }

  pid helper;

 private:
  void recover();

  play& shared_;
  sim::node& node_;
  std::array<std::unique_ptr<lane>, 2> lanes_;
  std::vector<std::unique_ptr<lane>> closed_;  // processes may still wait for their jobs
  std::unique_ptr<sim::journal> journal_;
  std::vector<std::uint64_t> attempted_;  // all that may be on the disk
  std::size_t confirmed_ = 0;             // so many of them must be
  bool failed_ = false;                   // the journal does not know what was written
  bool recovered_ = false;
};

inline void machine::begin() {
  closed_.clear();
  failed_ = recovered_ = false;
  lanes_[0] = node_.env().lanes().open("journal");
  lanes_[1] = node_.env().lanes().open("other");
  journal_ = std::make_unique<sim::journal>(node_.env().disk(), sim::mistakes{});
  (void)lanes_[0]->submit([this] { recover(); });
}

inline void machine::recover() {
  const result<void> opened = journal_->open();
  if (!opened) {
    shared_.expect(opened.error().code() != errc::invalid, "the journal is damaged");
    failed_ = true;
    return;
  }
  const std::vector<std::uint64_t>& found = journal_->numbers();
  shared_.expect(found.size() >= confirmed_, "numbers were lost that were synced");
  shared_.expect(found.size() <= attempted_.size() && std::equal(found.begin(), found.end(), attempted_.begin()),
                 "the disk has numbers that nobody has written there");
  attempted_ = found;
  confirmed_ = found.size();
  recovered_ = true;
}

inline std::uint64_t machine::add_numbers() {
  if (!journal_works()) return 0;
  std::vector<std::uint64_t> more;
  const bool is_snapshot = shared_.dice.chance(0.1);
  if (!is_snapshot)
    for (std::uint64_t n = 1 + shared_.dice.below(20); n != 0; --n) more.push_back(shared_.new_number());
  attempted_.insert(attempted_.end(), more.begin(), more.end());
  const result<void> added = is_snapshot ? journal_->take_snapshot() : journal_->add(more);
  if (added) confirmed_ = attempted_.size();
  failed_ = !added;
  mark(added ? "disk: synced" : added.error().code() == disk_errc::no_space ? "disk: full" : "disk: failed");
  return added ? 1 : 0;
}

inline void machine::replace_lane() {
  const std::size_t which = shared_.dice.below(lanes_.size());
  lanes_.at(which)->close();
  closed_.push_back(std::exchange(lanes_.at(which), node_.env().lanes().open(which == 0 ? "journal" : "other")));
  // A job that recovers the journal may have been dropped; until the next start nothing is written then.
}

// ---- processes

/// Completes the promises that it gets, sooner or later; some it takes with it when it is killed.
inline task<> helper(self& me, play* shared) {
  const frame mine{*shared, me.id()};
  std::vector<promise_ptr> held;
  for (;;) {
    auto got = co_await me.receive<please>(shared->draining ? 0ns : shared->some_time());
    if (auto* asked = std::get_if<please>(&got)) held.push_back(std::move(asked->it));
    while (!held.empty() && (shared->draining || shared->dice.chance(0.4))) {
      promise_ptr next = std::move(held.back());
      held.pop_back();
      shared->resolve(std::move(next));
    }
    if (!shared->draining) continue;
    please last = co_await me.receive<please>();
    shared->resolve(std::move(last.it));
  }
}

inline task<> awaits_promise(self& me, play* shared, machine* at) {
  const frame mine{*shared, me.id()};
  promised<std::uint64_t> made = make_promise<std::uint64_t>(me);
  auto held = std::make_unique<held_promise>(*shared, me.id(), std::move(made.promise));
  const std::shared_ptr<outcome> fate = held->fate();
  shared->hand_over(me, at->helper, std::move(held));
  for (;;) {
    const auto limit = shared->some_limit();
    const time_point begun = me.now();
    const result<std::uint64_t> got = co_await made.future.within(limit);
    shared->promise_ended(*fate, got, me.now() - begun, limit);
    if (got || got.error().code() != errc::timeout || shared->dice.chance(0.3)) co_return;
  }
}

inline task<> awaits_operation(self& me, play* shared) {
  const frame mine{*shared, me.id()};
  std::uint64_t buffer = 0;
  const std::uint64_t number = shared->new_number();
  const auto limit = shared->some_limit();
  const time_point begun = me.now();
  const auto start = [&](promise<std::uint64_t> done) {
    shared->begin_operation(number, mine, buffer, me.id(), std::move(done));
  };
  const auto cancel = [&] { shared->cancel_operation(number); };
  const result<std::uint64_t> got = co_await me.perform<std::uint64_t>(start, cancel).within(limit);
  shared->operation_ended(number, got, buffer, me.now() - begun, limit);
}

/// Work that uses the frame of its process, so it has no limit.
inline task<> works_with_its_frame(self& me, play* shared, machine* at) {
  const frame mine{*shared, me.id()};
  lane* where = shared->dice.chance(0.3) ? nullptr : &at->any_lane();
  const std::uint64_t value = shared->new_number();
  int runs = 0;
  auto token = std::make_shared<job_token>(*shared, mine);
  const auto work = [&](const std::shared_ptr<job_token>& t) {
    t->begin();
    ++runs;
    shared->expect(where == nullptr || !where->status().closed, "a job was begun in a closed lane");
    return value;
  };
  if (where == nullptr) {
    const std::uint64_t got = co_await me.blocking(work, std::move(token));
    shared->job_ended(got, value, runs, 0ns, forever);
    co_return;
  }
  const result<std::uint64_t> got = co_await in_lane(*where, work, std::move(token));
  shared->job_ended(got, value, runs, 0ns, forever);
}

inline std::uint64_t works_alone(const std::shared_ptr<lone_job>& j) {
  ++j->runs;
  j->was_closed = j->in != nullptr && j->in->status().closed;
  return j->value;
}

inline task<> works_within(self& me, play* shared, machine* at) {
  const frame mine{*shared, me.id()};
  lane* where = shared->dice.chance(0.3) ? nullptr : &at->any_lane();
  const auto job = std::make_shared<lone_job>(shared->new_number(), where);
  const auto limit = shared->some_limit();
  const time_point begun = me.now();
  if (where == nullptr) {
    const result<std::uint64_t> got = co_await me.blocking(works_alone, job).within(limit);
    shared->job_ended(got, job->value, job->runs, me.now() - begun, limit);
    co_return;
  }
  const result<std::uint64_t> got = co_await in_lane(*where, works_alone, job).within(limit);
  shared->expect(!job->was_closed, "a job was begun in a closed lane");
  shared->job_ended(got, job->value, job->runs, me.now() - begun, limit);
}

inline task<> writes_to_the_disk(self& me, play* shared, machine* at) {
  const frame mine{*shared, me.id()};
  const auto limit = shared->some_limit();
  const time_point begun = me.now();
  const auto add = [](machine* to) { return to->add_numbers(); };
  const result<std::uint64_t> got = co_await in_lane(at->journal_lane(), add, at).within(limit);
  if (got) co_return;
  const bool late = got.error().code() == errc::timeout;
  shared->expect(late ? me.now() - begun >= limit : got.error().code() == errc::stopped, "a write has a wrong error");
}

inline std::uint64_t throws_in_a_lane() { throw std::runtime_error{"work that fails"}; }

inline task<> fails_in_a_lane(self& me, play* shared, machine* at) {
  const frame mine{*shared, me.id()};
  bool caught = false;
  try {
    const result<std::uint64_t> got = co_await in_lane(at->any_lane(), throws_in_a_lane);
    shared->expect(!got, "a job that throws has a value");
  } catch (const std::runtime_error&) {
    caught = true;
  }
  if (caught) mark("job: threw");
}

inline task<> sleeps(self& me, play* shared) {
  const frame mine{*shared, me.id()};
  const auto how_long = shared->some_time();
  const time_point begun = me.now();
  co_await me.sleep(how_long);
  shared->expect(me.now() - begun >= how_long, "a sleep was too short");
}

inline task<> worker(self& me, play* shared, machine* at, int rounds) {
  const frame mine{*shared, me.id()};
  for (int i = 0; i < rounds && !shared->draining; ++i) {
    switch (shared->dice.below(12)) {
      case 0:
      case 1:
      case 2: co_await awaits_promise(me, shared, at); break;
      case 3:
      case 4:
      case 5: co_await awaits_operation(me, shared); break;
      case 6: co_await works_with_its_frame(me, shared, at); break;
      case 7:
      case 8: co_await works_within(me, shared, at); break;
      case 9:
      case 10: co_await writes_to_the_disk(me, shared, at); break;
      default:
        if (shared->dice.chance(0.3))
          co_await fails_in_a_lane(me, shared, at);
        else
          co_await sleeps(me, shared);
    }
  }
}

}  // namespace coppice::random_waits
