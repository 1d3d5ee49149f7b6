#include <algorithm>

#include <coppice/runtime/detail/scheduler.hpp>
#include <coppice/sim/world.hpp>

#include "internal/node_processes.hpp"
#include "internal/node_tracer.hpp"

namespace coppice::sim {

// ---- the environment of a node

namespace {

/// The subscribers of OS signals on a node, in the order of their subscriptions.
class subscribers {
 public:
  [[nodiscard]] std::uint64_t add(std::vector<os_signal> which, std::move_only_function<void(os_signal)> heard) {
    all_.emplace(++last_, std::make_shared<entry>(std::move(which), std::move(heard)));
    return last_;
  }
  void remove(std::uint64_t number) {
    const auto found = all_.find(number);
    if (found == all_.end()) return;
    found->second->removed = true;
    all_.erase(found);
  }
  /// Calls those who subscribed to the signal, as long as `cancel_at_timeout()`. A subscriber may remove subscriptions,
  /// its own too, or crash the node. False: the signal has no subscriber.
  template <class GoesOn>
  bool tell(os_signal s, const GoesOn& cancel_at_timeout) {
    bool heard = false;
    const auto now = all_;
    for (const auto& [number, each] : now) {
      if (!cancel_at_timeout()) break;
      if (each->removed || std::ranges::find(each->which, s) == each->which.end()) continue;
      heard = true;
      each->heard(s);
    }
    return heard;
  }

 private:
  struct entry {
    std::vector<os_signal> which;
    std::move_only_function<void(os_signal)> heard;
    bool removed = false;
    entry(std::vector<os_signal> signals, std::move_only_function<void(os_signal)> f)
        : which{std::move(signals)}, heard{std::move(f)} {}
  };
  std::map<std::uint64_t, std::shared_ptr<entry>> all_;
  std::uint64_t last_ = 0;
};

/// May outlive its node, and then does nothing.
class node_subscription final : public os_signal_subscription {
 public:
  node_subscription(std::weak_ptr<subscribers> of, std::uint64_t number) : of_{std::move(of)}, number_{number} {}
  node_subscription(const node_subscription&) = delete;
  node_subscription& operator=(const node_subscription&) = delete;
  ~node_subscription() override {
    if (const auto there = of_.lock()) there->remove(number_);
  }

 private:
  std::weak_ptr<subscribers> of_;
  std::uint64_t number_;
};

}  // namespace

class node_environment final : public environment,
                               private clock,
                               private random_source,
                               private fault_plan,
                               private os_signals {
 public:
  explicit node_environment(node& n)
      : node_{&n},
        clocks_{n.clocks_},
        world_{n.world_},
        disk_{n.disk_->mount(n.id())},
        lanes_{n.lanes_->start(n.id())},
        processes_{n.processes_} {}
  /// The node has crashed: jobs that are submitted from now on are dropped.
  void retire() noexcept { node_ = nullptr; }

  coppice::clock& clock() noexcept override { return *this; }
  random_source& random() noexcept override { return *this; }
  coppice::threads* threads() noexcept override { return nullptr; }
  std::unique_ptr<blocking_pool> make_blocking_pool(unsigned) override { return std::make_unique<node_pool>(*this); }
  coppice::disk& disk() noexcept override { return *disk_; }
  coppice::lanes& lanes() noexcept override { return *lanes_; }
  fault_plan* faults() noexcept override { return this; }
  coppice::os_signals& os_signals() noexcept override { return *this; }
  coppice::os_processes& os_processes() noexcept override { return *processes_; }
  std::string function_at(const void* code) override { return real_environment()->function_at(code); }
  std::uint64_t new_node_number() noexcept override { return world_.new_node_number(); }
  /// When a subscriber has crashed the node, the program of the others is gone.
  [[nodiscard]] bool tell(os_signal s) {
    return subscribers_->tell(s, [this] { return node_ != nullptr; });
  }

 private:
  time_point now() noexcept override { return clocks_.monotonic(world_.now()); }
  time_point coarse_now() noexcept override { return now(); }
  boot_time boot() noexcept override { return clocks_.boot(world_.now()); }
  wall_time wall() noexcept override {
    const auto offset = node_ != nullptr ? node_->wall_offset_ : std::chrono::nanoseconds{0};
    return clocks_.wall(world_.now()) + offset;
  }
  std::uint64_t next() override { return world_.chance().next(); }
  /// Any number of jobs may be under way: each is a step of the world.
  class node_pool final : public blocking_pool {
   public:
    explicit node_pool(node_environment& of) noexcept : of_{of} {}
    void submit(std::move_only_function<void()> job) override {
      if (of_.node_ != nullptr) of_.node_->jobs_.push_back(std::move(job));
    }

   private:
    node_environment& of_;
  };
  bool fails(std::string_view point) override { return world_.fails(point); }
  std::unique_ptr<os_signal_subscription> subscribe(std::vector<os_signal> which,
                                                    std::move_only_function<void(os_signal)> heard) override {
    const std::uint64_t number = subscribers_->add(std::move(which), std::move(heard));
    return std::make_unique<node_subscription>(subscribers_, number);
  }

  node* node_;
  const node_clock& clocks_;
  world& world_;
  std::unique_ptr<coppice::disk> disk_;
  std::unique_ptr<coppice::lanes> lanes_;
  std::shared_ptr<node_processes> processes_;
  std::shared_ptr<subscribers> subscribers_ = std::make_shared<subscribers>();
};

class node_scheduler final : public detail::scheduler {
 public:
  explicit node_scheduler(node& n) : node_{n} {}
  void begin() override {}
  void inject(detail::slot& p) override { node_.runnable_.push_back(&p); }
  void timer_armed(time_point) override {}
  bool wait(std::atomic<std::uint32_t>& done, std::optional<time_point> until) override {
    while (done.load() == 0) {
      if (until && node_.now() >= *until) return false;
      if (!node_.world_.step()) return false;
    }
    return true;
  }
  void wake(std::atomic<std::uint32_t>&) noexcept override {}
  bool take_from_stuck(detail::slot& p, std::uint32_t serial) override {
    for (auto& s : node_.stuck_) {
      if (s.serial != serial || !node::holds(s, p)) continue;
      s.in_hand = p.mail.head;
      std::erase(node_.runnable_, &p);
      return true;
    }
    return false;
  }
  void done_with_stuck(detail::slot&) override {}
  bool look_into_code(detail::slot&, const std::function<void(time_point)>&) override { return false; }
  std::vector<const void*> backtrace(detail::slot&) override { return {}; }
  bool stop(time_point) override { return true; }
  void count(runtime_counters& into) override {
    into.turns = node_.turns_;
    into.stalls = node_.stalls_;
    into.handled = node_.turn_.handled.load();
  }
  bool is_running(const detail::slot& p) override { return node_.is_stuck(p); }

 private:
  node& node_;
};

// ---- a node

node::node(world& w, std::string name, const runtime_options& options, const clock_quality& clocks)
    : world_{w},
      name_{std::move(name)},
      options_{options},
      clocks_{clocks, w.now()},
      disk_{std::make_shared<node_disk>(w)},
      lanes_{std::make_shared<node_lanes>(w, clocks_, *disk_)} {
  start();
}

node::~node() {
  if (up()) crash();
}

void node::start() {
  options_.node = node_id{world_.new_node_number()};
  world_.net().renumber(id_, options_.node);
  id_ = options_.node;
  processes_ = std::make_shared<node_processes>(world_, clocks_, programs_);
  environment_ = std::make_shared<node_environment>(*this);
  processes_->begin(id_);
  paused_ = false;
  runtime_ = std::make_unique<runtime>(environment_, options_);
  runtime_->host().set_scheduler(std::make_unique<node_scheduler>(*this));
  runtime_->connect(world_.net().attach(id_));
  attach_tracer();
  world_.add_to_hash("node up", id_.value());
  if (world_.traced())
    world_.tell({.at = {},
                 .node = name_,
                 .process = {},
                 .called = {},
                 .what = "node up, as number " + std::to_string(id_.value())});
}

void node::attach_tracer() {
  if (up() && !tracer_ && world_.traced()) tracer_ = std::make_unique<node_tracer>(world_, runtime_->host());
}

runtime& node::rt() {
  if (!up()) throw std::logic_error{"node " + name_ + " is down"};
  return *runtime_;
}

environment& node::env() { return rt().host().env(); }

void node::crash() {
  if (!up()) return;
  world_.add_to_hash("node down", id_.value());
  if (world_.traced()) world_.tell(id_, "node down");
  for (auto& s : stuck_)
    if (s.in_hand != nullptr) {
      runtime_->host().bury(*s.process, s.in_hand, true);
      detail::discard(runtime_->host(), s.in_hand);
    }
  stuck_.clear();
  runnable_.clear();
  jobs_.clear();
  lanes_->crash();
  disk_->crash();
  environment_->retire();
  processes_->retire();
  world_.net().forget(id_);
  runtime_.reset();
  tracer_.reset();
  runnable_.clear();
  paused_ = false;
  if (std::exchange(suspended_, false)) clocks_.go_on(world_.now());
}

void node::pause() {
  world_.add_to_hash("pause", id_.value());
  if (world_.traced()) world_.tell(id_, "paused");
  paused_ = true;
  world_.net().silence(id_);
}

void node::resume() {
  world_.add_to_hash("resume", id_.value());
  if (world_.traced()) world_.tell(id_, "resumed");
  paused_ = false;
  world_.net().send_waiting();
}

void node::suspend(std::chrono::nanoseconds duration) {
  if (!up() || duration.count() <= 0) return;
  world_.add_to_hash("suspend", id_.value(), static_cast<std::uint64_t>(duration.count()));
  if (world_.traced()) world_.tell(id_, "suspended for " + std::to_string(duration.count()) + " ns");
  clocks_.stop(world_.now(), world_.now() + duration);
  suspended_ = true;
  world_.net().silence(id_);
}

void node::wake_if_due() {
  if (!suspended_ || clocks_.running_since() > world_.now()) return;
  world_.add_to_hash("wake", id_.value());
  if (world_.traced()) world_.tell(id_, "no longer suspended");
  suspended_ = false;
  world_.net().send_waiting();
}

void node::set_clock_rate(double rate) { clocks_.set_rate(rate, world_.now()); }

time_point node::now() const noexcept { return clocks_.monotonic(world_.now()); }

void node::restart() {
  crash();
  start();
}

void node::raise(os_signal s) {
  if (!up()) return;
  world_.add_to_hash("signal", id_.value(), static_cast<std::uint64_t>(number_of(s)));
  if (world_.traced()) world_.tell(id_, "signal " + std::to_string(number_of(s)) + " of the operating system");
  jobs_.emplace_back([this, s] { deliver(s); });
}

void node::deliver(os_signal s) {
  const auto program = environment_;  // a subscriber may restart the node
  if (!program->tell(s)) crash();
}

void node::stick(pid who, std::chrono::nanoseconds duration) {
  if (!up() || !runtime_->alive(who)) return;
  world_.add_to_hash("stick", who.node().value(), who.index(), who.serial());
  if (tracer_) tracer_->tell(who, "gets stuck at its next signal, for " + std::to_string(duration.count()) + " ns");
  stuck_.push_back({.process = &runtime_->host().slot_at(who.index()),
                    .serial = who.serial(),
                    .until = now() + duration,
                    .since = now()});
}

/// A process can be stuck only in code of its own that handles a signal. The runtime itself handles links and exits.
bool node::holds(const stuck& s, const detail::slot& p) noexcept {
  if (s.process != &p || s.serial != p.serial() || s.in_hand != nullptr || p.process == nullptr) return false;
  if (p.mail.tail.load() == nullptr || p.mail.head->serial() != p.serial()) return false;
  switch (p.mail.head->what()) {
    case detail::signal::message:
    case detail::signal::seen: return detail::kernel::is_message(p, *p.mail.head);
    case detail::signal::fast:
    case detail::signal::reply:
    case detail::signal::notice:
    case detail::signal::down:
    case detail::signal::timeout:
    case detail::signal::wait_over:
    case detail::signal::wake:
    case detail::signal::mail: return true;
    default: return false;
  }
}

bool node::is_stuck(const detail::slot& p) const noexcept {
  return std::ranges::any_of(stuck_, [&](const stuck& s) { return holds(s, p); });
}

std::size_t node::choices() const noexcept {
  if (!up() || halted()) return 0;
  const std::size_t outside = jobs_.size() + lanes_->ready() + processes_->choices();
  if (stuck_.empty()) return outside + runnable_.size();
  return outside + static_cast<std::size_t>(
                       std::ranges::count_if(runnable_, [&](const detail::slot* p) { return !is_stuck(*p); }));
}

void node::look_at_stuck(time_point now) {
  for (std::size_t i = 0; i < stuck_.size();) {
    stuck& s = stuck_[i];
    if (now < s.until) {
      if (!s.reported && s.in_hand == nullptr && is_stuck(*s.process) && now - s.since >= options_.stall_after) {
        s.reported = true;
        ++stalls_;
        runtime_->host().report_stall(*s.process, std::chrono::duration_cast<std::chrono::milliseconds>(now - s.since));
      }
      ++i;
      continue;
    }
    const stuck over = s;
    stuck_.erase(stuck_.begin() + static_cast<std::ptrdiff_t>(i));
    if (over.in_hand == nullptr) continue;
    runtime_->host().bury(*over.process, over.in_hand, true);
    detail::discard(runtime_->host(), over.in_hand);
  }
}

// ---- the world

world::world(std::uint64_t seed) : seed_{seed}, dice_{seed}, network_{*this} {}

world::~world() {
  nodes_.clear();
  network_.drop_all();
}

node& world::add_node(std::string name, const runtime_options& options, const clock_quality& clocks) {
  if (name.empty()) name = "node" + std::to_string(nodes_.size() + 1);
  return nodes_.emplace_back(*this, std::move(name), options, clocks);
}

node* world::find(node_id id) noexcept {
  for (node& n : nodes_)
    if (n.id() == id) return &n;
  return nullptr;
}

bool world::fails(std::string_view point) {
  if (point == "signal.direct") return dice_.chance(0.5);  // direct and queued signals must have the same effect
  const auto found = faults_.find(point);
  return found != faults_.end() && dice_.chance(found->second);
}

void world::add_to_hash(std::string_view what, std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
  std::uint64_t h = hash_ ^ static_cast<std::uint64_t>(now_.time_since_epoch().count());
  for (const char letter : what) h = (h ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
  hash_ = mix(mix(mix(h ^ a) ^ b) ^ c);
}

void world::partition(node& a, node& b) {
  network_.cut(a.id(), b.id());
  network_.cut(b.id(), a.id());
}
void world::partition_one_way(node& from, node& to) { network_.cut(from.id(), to.id()); }
void world::heal() { network_.heal_all(); }

// ---- what happens next

void world::deliver_due() {
  for (node& n : nodes_) n.wake_if_due();
  network_.advance(now_);
  for (node& n : nodes_) {
    if (n.disk_->lost_power()) n.crash();
    if (n.up() && !n.halted()) n.lanes_->advance(now_);  // may crash the node
    if (!n.up() || n.halted()) continue;
    n.runtime_->host().fire_timers();
    n.look_at_stuck(n.now());
    const auto processes = n.processes_;  // a program may restart its node
    processes->advance(n.now());
  }
}

bool world::step() { return step_before(time_point::max()); }

bool world::step_before(time_point limit) {
  deliver_due();
  std::size_t choices = 0;
  for (const node& n : nodes_) choices += n.choices();
  if (choices == 0) return advance_to_next(limit);
  std::size_t pick = dice_.below(choices);
  for (node& n : nodes_) {
    const std::size_t mine = n.choices();
    if (pick < mine) {
      do_one_of(n, pick);
      break;
    }
    pick -= mine;
  }
  return true;
}

void world::do_one_of(node& n, std::size_t pick) {
  if (pick < n.jobs_.size()) {
    auto job = std::move(n.jobs_[pick]);
    n.jobs_.erase(n.jobs_.begin() + static_cast<std::ptrdiff_t>(pick));
    add_to_hash("job", n.id().value());
    if (traced()) tell(n.id(), "blocking work");
    job();
    return;
  }
  pick -= n.jobs_.size();
  if (pick < n.lanes_->ready()) return n.lanes_->begin_job(pick);
  pick -= n.lanes_->ready();
  if (const auto processes = n.processes_; pick < processes->choices()) {
    // Like a turn, so that two that answer each other cannot keep time from moving.
    now_ += std::chrono::nanoseconds{100};
    processes->do_one(pick);
    return;
  }
  pick -= n.processes_->choices();
  std::size_t at = pick;
  if (!n.stuck_.empty())
    for (at = 0; n.is_stuck(*n.runnable_[at]) || pick-- != 0;) ++at;
  run_process(n, at);
}

void world::run_process(node& n, std::size_t which) {
  detail::slot* p = n.runnable_[which];
  n.runnable_[which] = n.runnable_.back();
  n.runnable_.pop_back();
  detail::kernel& k = n.runtime_->host();
  const pid who = k.pid_of(*p);
  add_to_hash("run", who.node().value(), who.index(), who.serial());
  ++steps_;
  ++n.turns_;
  // Each turn takes time, so that a process that never waits cannot keep the clock from moving.
  now_ += std::chrono::nanoseconds{100};
  // One signal per turn, so that a process that is to be stuck stops before its next signal.
  const int budget = n.stuck_.empty() ? static_cast<int>(1 + dice_.below(4)) : 1;
  detail::turn* before = std::exchange(detail::current_turn, &n.turn_);
  n.turn_.k = &k;
  n.turn_.tracer = n.tracer_.get();
  if (n.tracer_) p->urgent.fetch_or(detail::in_world_trace);
  const std::uint64_t handled = n.turn_.handled.load();
  n.turn_.clock_cs.store(k.centiseconds(n.now()), std::memory_order_relaxed);
  const bool more = k.run(*p, budget, n.turn_);
  detail::current_turn = before;
  if (n.tracer_) p->urgent.fetch_and(static_cast<std::uint8_t>(~detail::in_world_trace));
  add_to_hash("handled", n.turn_.handled.load() - handled);
  if (n.tracer_ && n.turn_.handled.load() == handled && k.is_frozen(who)) n.tracer_->tell(who, "frozen");
  if (more) n.runnable_.push_back(p);
}

std::optional<time_point> world::next_event() {
  std::optional<time_point> first = network_.next();
  const auto earlier = [&](std::optional<time_point> t) {
    if (t && (!first || *t < *first)) first = t;
  };
  for (node& n : nodes_) {
    if (n.suspended_) earlier(n.clocks_.running_since());
    if (!n.up() || n.halted()) continue;
    const auto earlier_on_node = [&](std::optional<time_point> t) {
      if (t) earlier(n.clocks_.world_time_of(*t));
    };
    for (const auto& s : n.stuck_) {
      earlier_on_node(s.until);
      if (!s.reported && s.since + n.options_.stall_after > n.now()) earlier_on_node(s.since + n.options_.stall_after);
    }
    earlier(n.lanes_->next());
    earlier_on_node(n.runtime_->host().next_timer());
    earlier_on_node(n.processes_->next());
  }
  return first;
}

bool world::advance_to_next(time_point limit) {
  const auto next = next_event();
  if (!next || *next > limit) return false;
  now_ = std::max(now_ + std::chrono::nanoseconds{1}, *next);
  return true;
}

bool world::run(std::chrono::nanoseconds limit) {
  const time_point end = now_ + limit;
  while (now_ < end && step_before(end)) {}
  const bool quiet = !next_event() && std::ranges::all_of(nodes_, [](const node& n) { return n.choices() == 0; });
  if (!quiet) now_ = std::max(now_, end);
  return quiet;
}

bool world::settle(std::chrono::nanoseconds limit) {
  const time_point end = now_ + limit;
  for (deliver_due(); now_ < end; deliver_due()) {
    if (std::ranges::all_of(nodes_, [](const node& n) { return n.choices() == 0; })) return true;
    step_before(end);
  }
  return false;
}

void world::run_for(std::chrono::nanoseconds duration) {
  const time_point end = now_ + duration;
  (void)run_until([] { return false; }, duration);
  now_ = std::max(now_, end);
  deliver_due();
}

bool world::run_until(const std::function<bool()>& done, std::chrono::nanoseconds limit) {
  const time_point end = now_ + limit;
  for (deliver_due(); !done(); deliver_due()) {
    const bool anything = std::ranges::any_of(nodes_, [](const node& n) { return n.choices() != 0; });
    const auto next = anything ? std::optional{now_} : next_event();
    if (!next || *next > end) return false;
    step_before(end);
  }
  return true;
}

}  // namespace coppice::sim
