// Links to processes of another node, over a transport that does as the test says.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "support.hpp"

namespace {

using namespace coppice;

struct go {};

/// Connected when the test says so; what is sent is kept for the test to deliver.
class by_hand final : public transport {
 public:
  connection_number connect(node_id) override { return now; }
  bool send(connection_number over, parcel& p) override {
    if (over == 0 || over != now) return false;
    const std::scoped_lock lock{mutex_};
    sent_.push_back(std::move(p));
    return true;
  }
  std::vector<parcel> take() {
    const std::scoped_lock lock{mutex_};
    return std::exchange(sent_, {});
  }
  std::atomic<connection_number> now{0};

 private:
  std::mutex mutex_;
  std::vector<parcel> sent_;
};

task<> links_in_vain(self& me, pid far, std::latch* tried, std::latch* connected, std::vector<exited>* told) {
  me.trap_exits();
  me.link(far);  // there is no connection, and the news of that waits behind us
  tried->count_down();
  connected->wait();
  for (;;) {
    const auto m = co_await me.receive<exited, go>();
    if (std::holds_alternative<go>(m)) break;
    told->push_back(std::get<exited>(m));
  }
}
task<> links_when_told(self& me, std::latch* linked) {
  const pid other = co_await me.receive<pid>();
  me.link(other);
  linked->count_down();
  co_await me.receive<go>();
}

TEST(remote_link, one_that_failed_does_not_take_away_what_another_is_tied_to) {
  constexpr connection_number number = 7;
  std::latch tried{1};
  std::latch connected{1};
  std::latch linked{1};
  std::vector<exited> told;
  runtime here{quiet()};
  runtime there{quiet()};
  const auto from_here = std::make_shared<by_hand>();
  const auto from_there = std::make_shared<by_hand>();
  here.connect(from_here);
  there.connect(from_there);
  from_there->now = 1;
  const pid far = there.spawn(links_when_told, &linked);
  const pid near = here.spawn(links_in_vain, far, &tried, &connected, &told);
  tried.wait();
  there.send(far, near);
  linked.wait();
  from_here->now = number;
  for (parcel& p : from_there->take()) here.deliver(number, std::move(p));
  from_there->now = 0;  // it keeps nothing any more, neither a parcel nor the runtime that sent it
  connected.count_down();
  while (here.info(near)->links.size() != 1) std::this_thread::yield();
  from_here->now = 0;
  here.node_lost(far.node(), number);
  here.send(near, go{});
  here.wait(near);
  ASSERT_EQ(told.size(), 2U);
  for (const exited& x : told) {
    EXPECT_EQ(x.from, far);
    EXPECT_EQ(x.reason, exit_reason::noconnection());
  }
}

}  // namespace
