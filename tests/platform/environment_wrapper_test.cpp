// An environment that forwards to another one.
#include <gtest/gtest.h>

#include <stdexcept>

#include <coppice/env/environment_wrapper.hpp>

namespace {

using namespace coppice;

class constant final : public random_source {
 public:
  std::uint64_t next() override { return 4; }
};

class predictable final : public environment_wrapper {
 public:
  using environment_wrapper::environment_wrapper;
  random_source& random() noexcept override { return random_; }

 private:
  constant random_;
};

class with_faults final : public environment_wrapper, private fault_plan {
 public:
  using environment_wrapper::environment_wrapper;
  fault_plan* faults() noexcept override { return this; }
  std::unique_ptr<blocking_pool> make_blocking_pool(unsigned most_threads) override {
    asked_for = most_threads;
    return nullptr;
  }
  unsigned asked_for = 0;

 private:
  bool fails(std::string_view) override { return true; }
};

TEST(environment_wrapper, forwards_every_part) {
  const auto inner = std::make_shared<with_faults>(real_environment());
  environment_wrapper outer{inner};
  EXPECT_EQ(&outer.clock(), &inner->clock());
  EXPECT_EQ(&outer.random(), &inner->random());
  EXPECT_EQ(outer.threads(), inner->threads());
  EXPECT_EQ(outer.make_blocking_pool(7), nullptr);
  EXPECT_EQ(inner->asked_for, 7U);
  EXPECT_EQ(&outer.disk(), &inner->disk());
  EXPECT_EQ(&outer.lanes(), &inner->lanes());
  EXPECT_EQ(outer.faults(), inner->faults());
  EXPECT_EQ(&outer.os_signals(), &inner->os_signals());
  EXPECT_EQ(&outer.os_processes(), &inner->os_processes());
  const auto before = outer.new_node_number();
  EXPECT_EQ(inner->new_node_number(), before + 1) << "numbers come from one source";
}

TEST(environment_wrapper, a_part_that_is_replaced_leaves_the_others) {
  predictable env{real_environment()};
  EXPECT_EQ(env.random().next(), 4U);
  EXPECT_EQ(&env.clock(), &real_environment()->clock());
}

TEST(environment_wrapper, refuses_to_forward_to_nothing) {
  EXPECT_THROW(environment_wrapper{nullptr}, std::invalid_argument);
}

}  // namespace
