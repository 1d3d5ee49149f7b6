// The table of processes, without a runtime.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include <coppice/runtime/detail/process_table.hpp>

namespace {

using namespace coppice;
using namespace coppice::detail;

constexpr node_id here{7};

TEST(process_table, hands_out_each_slot_once_and_then_is_full) {
  process_table table{here, 3};
  std::set<std::uint32_t> taken;
  for (int i = 0; i < 3; ++i) taken.insert(table.take());
  EXPECT_EQ(taken, (std::set<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(table.take(), 0U);
  EXPECT_EQ(table.take_some(std::array<std::uint32_t, 4>{}.data(), 4), 0U);
}

TEST(process_table, a_slot_given_back_is_handed_out_again) {
  process_table table{here, 1};
  const std::uint32_t index = table.take();
  EXPECT_EQ(table.take(), 0U);
  table.give_back(&index, 1);
  EXPECT_EQ(table.take(), index);
}

TEST(process_table, hands_out_many_different_slots_at_once) {
  process_table table{here, 100};
  std::array<std::uint32_t, 10> some{};
  EXPECT_EQ(table.take_some(some.data(), some.size()), some.size());
  EXPECT_EQ(std::set<std::uint32_t>(some.begin(), some.end()).size(), some.size());
  EXPECT_EQ(table.used(), 11U);
}

TEST(process_table, finds_a_slot_by_pid_and_the_pid_by_slot) {
  process_table table{here, 10};
  slot& p = table[table.take()];
  const pid who = table.pid_of(p);
  EXPECT_TRUE(table.covers(who));
  EXPECT_EQ(&table[who.index()], &p);
  EXPECT_TRUE(table.alive(who));
  EXPECT_FALSE(table.covers(pid::from_parts(node_id{8}, who.index(), who.serial())));
  EXPECT_FALSE(table.alive(pid{}));
}

TEST(process_table, an_old_serial_is_not_alive_and_gone_once_the_mailbox_is_idle) {
  process_table table{here, 10};
  slot& p = table[table.take()];
  const pid before = table.pid_of(p);
  p.tag.store(envelope::tag_of(before.serial() + 1, signal::vacant));
  EXPECT_FALSE(table.alive(before));
  EXPECT_TRUE(table.gone(before));
  envelope busy{nullptr};
  ASSERT_TRUE(p.mail.claim(&busy));
  EXPECT_FALSE(table.gone(before)) << "those linked to it may not be notified yet";
}

TEST(process_table, knows_the_parent_for_life_and_its_link_for_as_long_as_it_holds) {
  process_table table{here, 10};
  slot& parent = table[table.take()];
  slot& child = table[table.take()];
  const pid who = table.pid_of(parent);
  child.parent_index = who.index();
  child.parent_serial = who.serial();
  EXPECT_FALSE(table.is_parent(child, who)) << "it was not spawned linked";
  child.set(slot::born_linked | slot::parent_linked, true);
  EXPECT_TRUE(table.is_parent(child, who));
  EXPECT_TRUE(table.is_linked_parent(child, who));
  child.set(slot::parent_linked, false);
  EXPECT_TRUE(table.is_parent(child, who));
  EXPECT_FALSE(table.is_linked_parent(child, who));
  EXPECT_EQ(table.parent_of(child), who);
  EXPECT_EQ(table.parent_of(parent), pid{});
}

}  // namespace
