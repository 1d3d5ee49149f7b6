#pragma once
/// What the processes of a random program with waits share: promises and operations that somebody else completes, jobs,
/// and a list of all frames. Everything checks what is promised to it; see random_waits_test.cpp.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <coppice/runtime/runtime.hpp>
#include <coppice/sim/explore.hpp>

#include "seeds.hpp"

namespace coppice::random_waits {

using namespace std::chrono_literals;
using seeds::mark;

/// What became of a promise.
struct outcome {
  enum class kind : std::uint8_t { open, completed, failed, dropped };
  kind how = kind::open;
  std::uint64_t value = 0;
};

class play;

/// A promise on its way to somebody who completes it; one that is destroyed before that is dropped.
class held_promise {
 public:
  held_promise(play& shared, pid owner, promise<std::uint64_t> p)
      : shared_{shared}, owner_{owner}, promise_{std::move(p)} {}
  held_promise(const held_promise&) = delete;
  held_promise& operator=(const held_promise&) = delete;
  ~held_promise() {
    if (outcome_->how == outcome::kind::open) outcome_->how = outcome::kind::dropped;
  }
  void complete();
  void fail() {
    *outcome_ = {.how = outcome::kind::failed};
    promise_.fail(error{errc::capacity, "no luck"});
  }
  [[nodiscard]] const std::shared_ptr<outcome>& fate() const noexcept { return outcome_; }

 private:
  play& shared_;
  pid owner_;
  promise<std::uint64_t> promise_;
  std::shared_ptr<outcome> outcome_ = std::make_shared<outcome>();
};
using promise_ptr = std::unique_ptr<held_promise>;

/// To a helper.
struct please {
  promise_ptr it;
};

/// A local of every frame.
class frame {
 public:
  frame(play& shared, pid of);
  frame(const frame&) = delete;
  frame& operator=(const frame&) = delete;
  ~frame();
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

 private:
  play& shared_;
  std::uint64_t number_;
};

/// Belongs to a job that uses the frame of its process: from its beginning until the job is over.
class job_token {
 public:
  job_token(play& shared, const frame& of) : shared_{shared}, frame_{of.number()} {}
  job_token(const job_token&) = delete;
  job_token& operator=(const job_token&) = delete;
  ~job_token();
  void begin();

 private:
  play& shared_;
  std::uint64_t frame_;
  bool begun_ = false;
};

/// A job that goes on when its process no longer waits for it.
struct lone_job {
  std::uint64_t value = 0;
  const lane* in = nullptr;  // null: the pool of the runtime
  int runs = 0;
  bool was_closed = false;  // it was run although its lane was closed
};

class play {
 public:
  explicit play(sim::world& w) : world{w}, dice{w.seed() * 0xd1342543de82ef95ULL + 1} {}

  /// An exception in a process would only end the process, so what is broken is kept for the test.
  void expect(bool holds, std::string_view what) {
    if (!holds && broken_.empty()) broken_ = what;
  }
  void check() const { sim::require(broken_.empty(), broken_); }
  [[nodiscard]] bool is_up(node_id id) {
    const sim::node* n = world.find(id);
    return n != nullptr && n->up();
  }
  [[nodiscard]] std::uint64_t new_number() { return ++numbers_; }
  /// Mostly short, so that limits, completions and turns meet.
  [[nodiscard]] std::chrono::nanoseconds some_time() {
    switch (dice.below(8)) {
      case 0: return 0ns;
      case 1: return dice.between(1ms, 60ms);
      case 2: return dice.between(1ns, 5us);
      default: return dice.between(1us, 3ms);
    }
  }
  [[nodiscard]] std::chrono::nanoseconds some_limit() { return dice.chance(0.4) ? forever : some_time(); }

  // -- frames
  [[nodiscard]] std::uint64_t add_frame(pid of) {
    const std::uint64_t number = new_number();
    frames_.emplace(number, used_frame{.of = of});
    return number;
  }
  void remove_frame(std::uint64_t number) {
    const auto found = frames_.find(number);
    if (found == frames_.end()) return expect(false, "a frame was destroyed twice");
    expect(found->second.users == 0 || !is_up(found->second.of.node()), "a frame was destroyed while it was in use");
    frames_.erase(found);
  }
  void use(std::uint64_t frame_number) {
    const auto found = frames_.find(frame_number);
    if (found == frames_.end()) return expect(false, "something began that uses a destroyed frame");
    ++found->second.users;
  }
  /// After a crash the frame may be gone.
  void end_use(std::uint64_t frame_number) {
    if (const auto found = frames_.find(frame_number); found != frames_.end()) --found->second.users;
  }
  [[nodiscard]] std::size_t frames() const noexcept { return frames_.size(); }

  // -- promises
  void hand_over(self& me, pid helper, promise_ptr p);
  void resolve(promise_ptr p);
  void promise_ended(const outcome& fate, const result<std::uint64_t>& got, std::chrono::nanoseconds lasting,
                     std::chrono::nanoseconds limit);

  // -- operations
  void begin_operation(std::uint64_t number, const frame& in, std::uint64_t& buffer, pid owner,
                       promise<std::uint64_t> done);
  void cancel_operation(std::uint64_t number) {
    if (const auto found = operations_.find(number); found != operations_.end()) {
      expect(!found->second.cancelled, "an operation was cancelled twice");
      found->second.cancelled = true;
    }
  }
  void operation_ended(std::uint64_t number, const result<std::uint64_t>& got, std::uint64_t buffer,
                       std::chrono::nanoseconds lasting, std::chrono::nanoseconds limit);
  /// Completes some of the promises and operations that are pending outside of the processes, or all of them.
  void resolve_outside(double share);
  [[nodiscard]] bool nothing_outside() const noexcept { return outside_.empty() && operations_.empty(); }

  // -- jobs
  void job_ended(const result<std::uint64_t>& got, std::uint64_t value, int runs, std::chrono::nanoseconds lasting,
                 std::chrono::nanoseconds limit);

  sim::world& world;
  sim::dice dice;
  bool draining = false;

 private:
  struct used_frame {
    pid of;
    int users = 0;  // operations and jobs that have begun and are not over
  };
  struct operation {
    promise_ptr done;
    pid owner;
    std::uint64_t frame = 0;
    std::uint64_t* buffer = nullptr;
    bool cancelled = false;
  };
  void finish(std::uint64_t number);

  std::string broken_;
  std::uint64_t numbers_ = 0;
  std::map<std::uint64_t, used_frame> frames_;
  std::vector<promise_ptr> outside_;
  std::map<std::uint64_t, operation> operations_;
  std::map<std::uint64_t, std::shared_ptr<outcome>> fates_;  // of all operations
};

inline frame::frame(play& shared, pid of) : shared_{shared}, number_{shared.add_frame(of)} {}
inline frame::~frame() { shared_.remove_frame(number_); }

inline void job_token::begin() {
  begun_ = true;
  shared_.use(frame_);
}
inline job_token::~job_token() {
  if (begun_) shared_.end_use(frame_);
}

// ---- promises

inline void held_promise::complete() {
  const bool first = outcome_->how == outcome::kind::open;
  if (first) *outcome_ = {.how = outcome::kind::completed, .value = shared_.new_number()};
  const bool accepted = promise_.complete(first ? outcome_->value : 0);
  shared_.expect(first || !accepted, "a promise was completed twice");
}

inline void play::hand_over(self& me, pid helper, promise_ptr p) {
  switch (dice.below(8)) {
    case 0: return resolve(std::move(p));
    case 1:
    case 2:
    case 3: return me.send(helper, please{std::move(p)});
    default: outside_.push_back(std::move(p));
  }
}

inline void play::resolve(promise_ptr p) {
  switch (dice.below(10)) {
    case 0: return p->fail();
    case 1:
    case 2: return p.reset();
    case 3: p->complete(); [[fallthrough]];
    default: p->complete();
  }
}

inline void play::promise_ended(const outcome& fate, const result<std::uint64_t>& got, std::chrono::nanoseconds lasting,
                                std::chrono::nanoseconds limit) {
  world.note("promise", got ? *got : 0, got ? 0 : 1 + static_cast<std::uint64_t>(fate.how));
  if (got) {
    mark("promise: value");
    return expect(fate.how == outcome::kind::completed && *got == fate.value, "a future has a value of its own");
  }
  if (got.error().code() == errc::timeout) {
    mark("promise: timeout");
    return expect(lasting >= limit, "a wait for a future has timed out too early");
  }
  if (got.error().code() == errc::no_reply) {
    mark("promise: dropped");
    return expect(fate.how == outcome::kind::dropped, "a future was given up, but not its promise");
  }
  mark("promise: error");
  expect(fate.how == outcome::kind::failed && got.error().code() == errc::capacity, "a future has an error of its own");
}

// ---- operations

inline void play::begin_operation(std::uint64_t number, const frame& in, std::uint64_t& buffer, pid owner,
                                  promise<std::uint64_t> done) {
  auto held = std::make_unique<held_promise>(*this, owner, std::move(done));
  fates_[number] = held->fate();
  use(in.number());
  operations_[number] = {.done = std::move(held), .owner = owner, .frame = in.number(), .buffer = &buffer};
  if (dice.chance(0.1)) finish(number);  // at once, before its process waits
}

inline void play::finish(std::uint64_t number) {
  operation o = std::move(operations_.at(number));
  operations_.erase(number);
  const bool there = is_up(o.owner.node());
  expect(!there || frames_.contains(o.frame), "a frame was destroyed before its operation was over");
  end_use(o.frame);
  if (!there || dice.chance(0.1)) return;  // drops the promise; after a crash nobody may use the buffer
  if (dice.chance(o.cancelled ? 0.8 : 0.1)) return o.done->fail();
  *o.buffer = number;
  o.done->complete();
}

inline void play::operation_ended(std::uint64_t number, const result<std::uint64_t>& got, std::uint64_t buffer,
                                  std::chrono::nanoseconds lasting, std::chrono::nanoseconds limit) {
  const outcome& fate = *fates_.at(number);
  world.note("operation", got ? *got : 0, got ? 0 : 1 + static_cast<std::uint64_t>(fate.how));
  expect(!operations_.contains(number), "a process goes on before its operation is over");
  if (got) {
    mark(lasting >= limit ? "operation: value after its limit" : "operation: value");
    expect(buffer == number, "an operation has not written its buffer");
    return expect(fate.how == outcome::kind::completed && *got == fate.value, "an operation has a value of its own");
  }
  if (got.error().code() == errc::timeout) {
    mark("operation: timeout");
    return expect(lasting >= limit && fate.how != outcome::kind::completed, "an operation has timed out too early");
  }
  mark(fate.how == outcome::kind::dropped ? "operation: dropped" : "operation: error");
  expect(fate.how == outcome::kind::dropped || fate.how == outcome::kind::failed,
         "an operation has an error of its own");
}

inline void play::resolve_outside(double share) {
  std::vector<promise_ptr> now;
  for (promise_ptr& each : outside_)
    if (dice.chance(share)) now.push_back(std::move(each));
  std::erase(outside_, nullptr);
  for (promise_ptr& each : now) resolve(std::move(each));
  std::vector<std::uint64_t> over;
  for (const auto& [number, each] : operations_)
    if (dice.chance(each.cancelled ? 0.5 + share / 2 : share)) over.push_back(number);
  for (const std::uint64_t number : over)
    if (operations_.contains(number)) finish(number);
}

// ---- jobs

inline void play::job_ended(const result<std::uint64_t>& got, std::uint64_t value, int runs,
                            std::chrono::nanoseconds lasting, std::chrono::nanoseconds limit) {
  world.note("work", got ? *got : 0, static_cast<std::uint64_t>(runs));
  if (got) {
    mark("job: value");
    return expect(*got == value && runs == 1, "a job has a value, but was not run once");
  }
  if (got.error().code() == errc::timeout) {
    mark(runs == 0 ? "job: timeout before it began" : "job: timeout while it ran");
    return expect(lasting >= limit && runs <= 1, "a job has timed out too early");
  }
  mark("job: dropped");
  expect(got.error().code() == errc::stopped && runs == 0, "a job was dropped, but had begun");
}

}  // namespace coppice::random_waits
