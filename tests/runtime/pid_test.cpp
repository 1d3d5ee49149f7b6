#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <thread>
#include <unordered_set>
#include <vector>

#include <coppice/runtime/runtime.hpp>

namespace {

using namespace coppice;

struct go {};
struct echo {
  using reply = int;
  int n = 0;
};

TEST(pid, the_default_is_nobody) {
  EXPECT_FALSE(pid{});
  EXPECT_EQ(pid{}, pid{});
  EXPECT_TRUE(pid::from_parts(node_id{1}, 1, 0));
}

TEST(pid, consists_of_node_place_and_serial) {
  const pid p = pid::from_parts(node_id{3}, 7, 2);
  EXPECT_EQ(p.node(), node_id{3});
  EXPECT_EQ(p.index(), 7U);
  EXPECT_EQ(p.serial(), 2U);
  EXPECT_EQ(to_string(p), "<3.7.2>");
  std::ostringstream out;
  out << p;
  EXPECT_EQ(out.str(), "<3.7.2>");
}

TEST(pid, compares_and_hashes_by_all_its_parts) {
  std::set<pid> ordered;
  std::unordered_set<pid> hashed;
  for (std::uint64_t node = 1; node < 5; ++node)
    for (std::uint32_t index = 1; index < 20; ++index)
      for (std::uint32_t serial = 0; serial < 20; ++serial) {
        const pid p = pid::from_parts(node_id{node}, index, serial);
        EXPECT_TRUE(ordered.insert(p).second);
        EXPECT_TRUE(hashed.insert(p).second);
      }
  EXPECT_EQ(ordered.size(), hashed.size());
}

task<> idles(self& me) { co_await me.receive<go>(); }

/// Addresses that no spawn ever gave: of an unused place, of the place of nobody, of a serial still to come.
std::vector<pid> never_given(runtime& rt) {
  const pid p = rt.spawn(idles);
  rt.kill(p);
  rt.wait(p);
  return {pid::from_parts(rt.node(), 5000, 0),
          pid::from_parts(rt.node(), 5000, 3),
          pid::from_parts(rt.node(), 0, 0),
          pid::from_parts(rt.node(), 0xffffffff, 0),
          pid::from_parts(rt.node(), p.index(), p.serial() + 1),
          pid::from_parts(rt.node(), p.index(), p.serial() + 2)};
}

TEST(pid, one_that_was_never_given_out_is_as_one_of_the_dead) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  for (const pid p : never_given(rt)) {
    const auto before = rt.counters().dead_letters;
    rt.send(p, go{});
    rt.kill(p);
    rt.exit(p, exit_reason::shutdown());
    EXPECT_EQ(rt.wait(p), exit_reason::noproc()) << p;
    EXPECT_EQ(rt.call(call<echo>(p, 1)).error().code(), errc::noproc) << p;
    EXPECT_EQ(rt.info(p), std::nullopt) << p;
    while (rt.counters().dead_letters == before) std::this_thread::yield();
    EXPECT_FALSE(rt.abandon(p));
  }
  const pid alive = rt.spawn(idles);
  rt.send(alive, go{});
  rt.wait(alive);
}

}  // namespace
