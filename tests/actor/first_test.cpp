#include <gtest/gtest.h>

#include <coppice/actor/actor.hpp>
#include <coppice/runtime/runtime.hpp>
namespace coppice {
namespace {
struct bump {
  using reply = int;
  int by = 1;
};
struct boom {};
struct counter {
  using protocol = coppice::protocol<bump, boom>;
  int handle(bump m) { return value += m.by; }
  void handle(boom) { throw std::runtime_error{"boom"}; }
  int value = 0;
};
TEST(first, counts_and_restarts) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  const auto c = spawn_actor(rt, props<counter>());
  EXPECT_EQ(rt.call(c.call<bump>(3)), 3);
  c.tell(rt, boom{});
  EXPECT_EQ(rt.call(c.call<bump>(3)), 3);
  stop_actor(rt, c.id());
  EXPECT_EQ(rt.wait(c.id()).what() == exit_reason::kind::normal || !rt.alive(c.id()), true);
}
}  // namespace
}  // namespace coppice
