#pragma once
// A simulated node with a job supervisor, and a few jobs.
#include <stdexcept>

#include <coppice/supervision/job_supervisor.hpp>

#include "family.hpp"

namespace coppice {

struct never {};

inline int twice(int n) { return 2 * n; }
inline int fails(int) { throw std::runtime_error{"out of luck"}; }
inline task<int> slowly(self& me, int n) {
  const std::chrono::milliseconds time{n};
  co_await me.sleep(time);
  co_return n;
}
inline task<int> for_ever(self& me, int n) {
  co_await me.receive<never>();
  co_return n;
}

/// A simulated node with a job supervisor. `count` and `list` ask the supervisor for its jobs.
class office {
 public:
  explicit office(dynamic_supervisor_spec spec = {}, std::uint64_t seed = 7) : world_{seed} {
    rt().spawn(
        +[](self& me, dynamic_supervisor_spec s, ref<job_supervisor>* into) -> task<> {
          me.trap_exits();
          const spawn_options linked{.link = true};
          const auto made = co_await start<job_supervisor>(me, linked, s);
          *into = *made;
          co_await me.receive<never>();
        },
        spec, &jobs);
    EXPECT_TRUE(world_.settle());
  }
  runtime& rt() { return node_.rt(); }
  sim::world& world() { return world_; }
  std::size_t count() {
    auto n = std::make_shared<std::size_t>(99);
    rt().spawn(
        +[](self&, ref<job_supervisor> j, std::shared_ptr<std::size_t> into) -> task<> {
          const auto counted = co_await count_children(j);
          *into = counted ? counted->specs : 77;
        },
        jobs, n);
    EXPECT_TRUE(world_.settle());
    return *n;
  }
  std::vector<child_info> list() {
    auto all = std::make_shared<std::vector<child_info>>();
    rt().spawn(
        +[](self&, ref<job_supervisor> j, std::shared_ptr<std::vector<child_info>> into) -> task<> {
          const auto found = co_await which_children(j);
          *into = found.value_or(std::vector<child_info>{});
        },
        jobs, all);
    EXPECT_TRUE(world_.settle());
    return *all;
  }
  ref<job_supervisor> jobs;

 private:
  sim::world world_;
  sim::node& node_ = world_.add_node();
};

/// How many messages wait in the mailbox; takes them.
inline task<int> mail_left(self& me) {
  for (int n = 0;; ++n) {
    const auto m = co_await me.receive<any_message>(0ns);
    if (std::holds_alternative<timed_out>(m)) co_return n;
  }
}

}  // namespace coppice
