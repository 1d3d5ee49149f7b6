// Names and labels, without a runtime.
#include <gtest/gtest.h>
#include <runtime/internal/name_table.hpp>

namespace {

using namespace coppice;
using namespace coppice::detail;

class name_table_test : public testing::Test {
 protected:
  pid start() { return table.pid_of(table[table.take()]); }
  void end(pid who) { table[who.index()].tag.store(envelope::tag_of(who.serial() + 1, signal::vacant)); }

  process_table table{node_id{1}, 10};
  name_table names{table};
};

TEST_F(name_table_test, a_name_belongs_to_one_process_and_a_process_has_one_name) {
  const pid first = start();
  const pid second = start();
  EXPECT_TRUE(names.add("db", first).has_value());
  EXPECT_EQ(names.add("db", second).error().code(), errc::name_taken);
  EXPECT_EQ(names.add("other", first).error().code(), errc::invalid);
  EXPECT_EQ(names.find("db"), first);
  EXPECT_EQ(names.of(first).name, "db");
}

TEST_F(name_table_test, a_name_is_free_again_when_it_is_removed_or_its_process_has_ended) {
  const pid who = start();
  ASSERT_TRUE(names.add("db", who).has_value());
  EXPECT_TRUE(names.remove("db"));
  EXPECT_FALSE(names.remove("db"));
  ASSERT_TRUE(names.add("db", who).has_value());
  EXPECT_EQ(names.release(who).name, "db");
  EXPECT_EQ(names.find("db"), pid{});
}

TEST_F(name_table_test, a_dead_process_gets_no_name_and_an_empty_name_is_refused) {
  const pid who = start();
  EXPECT_EQ(names.add("", who).error().code(), errc::invalid);
  end(who);
  EXPECT_EQ(names.add("db", who).error().code(), errc::noproc);
  EXPECT_EQ(names.find("db"), pid{});
}

TEST_F(name_table_test, a_process_that_is_about_to_start_begins_only_when_it_has_its_name) {
  const pid first = start();
  const pid second = start();
  bool begun = false;
  EXPECT_TRUE(names.add_unborn("db", first, [&] { begun = true; }).has_value());
  EXPECT_TRUE(begun);
  begun = false;
  EXPECT_FALSE(names.add_unborn("db", second, [&] { begun = true; }).has_value());
  EXPECT_FALSE(begun);
}

TEST_F(name_table_test, a_process_without_a_name_can_have_a_label_until_it_ends) {
  const pid who = start();
  names.set_label(who, "worker 7");
  EXPECT_EQ(names.of(who).label, "worker 7");
  EXPECT_EQ(table[who.index()].named.load(), 1U);
  EXPECT_EQ(names.release(who).label, "worker 7");
  EXPECT_EQ(names.of(who).label, "");
}

}  // namespace
