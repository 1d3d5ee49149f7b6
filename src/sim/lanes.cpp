#include <algorithm>
#include <deque>

#include <coppice/sim/lanes.hpp>
#include <coppice/sim/world.hpp>

namespace coppice::sim {

/// What the handle of a lane and the machine share. After a crash it is closed and idle, and does not use the world.
class simulated_lane {
 public:
  struct job {
    std::move_only_function<void()> work;
    std::move_only_function<void()> done;
  };
  struct progress {
    time_point since;  // on the clock of the node
    std::move_only_function<void()> done;
    std::optional<time_point> until{};  // in the time of the world; nothing: its work is being done at this moment
  };

  explicit simulated_lane(lane_status begin) : counts{std::move(begin)} {}

  [[nodiscard]] bool ready() const noexcept { return !running && !jobs.empty(); }
  [[nodiscard]] bool idle() const noexcept { return !running; }
  [[nodiscard]] lane_status status() const {
    lane_status now = counts;
    now.queued = jobs.size();
    if (running) now.running_since = running->since;
    return now;
  }
  void put_off(std::chrono::nanoseconds by) {
    if (running && running->until)
      *running->until += by;
    else
      delay += by;
  }
  void close() noexcept {
    counts.closed = true;
    counts.dropped += jobs.size();
    std::deque<job> dropped;
    dropped.swap(jobs);  // their destructors may use the lane
    while (!dropped.empty()) dropped.pop_front();
  }

  lane_status counts;  // `queued` and `running_since` are filled in by `status`
  std::deque<job> jobs;
  std::optional<progress> running;
  std::chrono::nanoseconds delay{0};  // of the next job
};

namespace {

class lane_handle final : public lane {
 public:
  lane_handle(world& w, const node_clock& clocks, std::shared_ptr<simulated_lane> of)
      : world_{w}, clocks_{clocks}, lane_{std::move(of)} {}
  lane_handle(const lane_handle&) = delete;
  lane_handle& operator=(const lane_handle&) = delete;
  ~lane_handle() override { lane_->close(); }

  bool submit(std::move_only_function<void()> work, std::move_only_function<void()> done) override {
    if (lane_->counts.closed) return false;
    lane_->jobs.push_back({std::move(work), std::move(done)});
    return true;
  }
  void close() noexcept override { lane_->close(); }
  bool wait_closed(time_point until) override {
    const auto ended = [this] { return lane_->counts.closed && lane_->idle(); };
    while (!ended()) {
      if (clocks_.monotonic(world_.now()) >= until) return false;
      if (!world_.step()) return ended();  // the last step may have ended the job
    }
    return true;
  }
  lane_status status() const override { return lane_->status(); }

 private:
  world& world_;
  const node_clock& clocks_;
  std::shared_ptr<simulated_lane> lane_;
};

}  // namespace

/// One start of a program on the node.
class started_lanes final : public coppice::lanes {
 public:
  explicit started_lanes(std::shared_ptr<node_lanes> of) : of_{std::move(of)}, start_{of_->starts_} {}
  std::unique_ptr<lane> open(std::string name) override {
    const bool crashed = start_ != of_->starts_;
    auto opened = std::make_shared<simulated_lane>(lane_status{.name = std::move(name), .closed = crashed});
    std::erase_if(of_->opened_, [](const auto& each) { return each->counts.closed && each->idle(); });
    if (!crashed) of_->opened_.push_back(opened);
    return std::make_unique<lane_handle>(of_->world_, of_->clocks_, std::move(opened));
  }
  std::vector<lane_status> status() const override {
    return start_ == of_->starts_ ? of_->status() : std::vector<lane_status>{};
  }

 private:
  std::shared_ptr<node_lanes> of_;
  std::uint64_t start_;
};

std::unique_ptr<coppice::lanes> node_lanes::start(node_id as) {
  node_ = as;
  return std::make_unique<started_lanes>(shared_from_this());
}

void node_lanes::delay(std::string_view name, std::chrono::nanoseconds by) {
  for (const auto& each : opened_)
    if (each->counts.name == name) each->put_off(by);
}

std::vector<lane_status> node_lanes::status() const {
  std::vector<lane_status> all;
  for (const auto& each : opened_)
    if (!each->counts.closed || !each->idle()) all.push_back(each->status());
  return all;
}

std::size_t node_lanes::ready() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(opened_, [](const auto& each) { return each->ready(); }));
}

void node_lanes::begin_job(std::size_t which) {
  const std::uint64_t start = starts_;
  const auto at = std::ranges::find_if(opened_, [&](const auto& each) { return each->ready() && which-- == 0; });
  // A copy, because the work may close the lane or open others.
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const std::shared_ptr<simulated_lane> lane = *at;
  simulated_lane::job next = std::move(lane->jobs.front());
  lane->jobs.pop_front();
  world_.add_to_hash("lane job", node_.value(), static_cast<std::uint64_t>(at - opened_.begin()), lane->counts.done);
  if (world_.traced()) world_.tell(node_, "lane " + lane->counts.name + " does a job");
  (void)disk_.take_time();  // of calls that were not made by jobs of lanes
  lane->running.emplace(clocks_.monotonic(world_.now()), std::move(next.done));
  next.work();
  if (start != starts_) return;  // the work has crashed its node
  const auto duration =
      world_.chance().between(quality.job_min, quality.job_max) + disk_.take_time() + std::exchange(lane->delay, {});
  lane->running->until = world_.now() + duration;
}

std::optional<time_point> node_lanes::next() const noexcept {
  std::optional<time_point> first;
  for (const auto& each : opened_)
    if (each->running && each->running->until && (!first || *each->running->until < *first))
      first = each->running->until;
  return first;
}

void node_lanes::advance(time_point now) {
  const auto first = next();
  if (!first || *first > now) return;
  const auto all = opened_;  // `done` may open lanes
  for (const auto& lane : all) {
    if (!lane->running || !lane->running->until || *lane->running->until > now) continue;
    world_.add_to_hash("lane done", node_.value(), lane->counts.done);
    if (world_.traced()) world_.tell(node_, "lane " + lane->counts.name + " has done a job");
    auto done = std::move(lane->running->done);
    done();
    if (lane->running) ++lane->counts.done;
    lane->running.reset();
  }
}

void node_lanes::crash() {
  ++starts_;
  const auto all = std::exchange(opened_, {});
  for (const auto& lane : all) {
    lane->close();
    lane->running.reset();
  }
}

}  // namespace coppice::sim
