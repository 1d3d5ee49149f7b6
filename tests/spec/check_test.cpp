// Specs that no supervisor takes, and the words in which they are refused.
#include <gtest/gtest.h>

#include <coppice/spec/child.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

task<> body(self&) { co_return; }

child_spec good(std::string_view id = "a") { return child(body).with({.id = id}); }

void expect_refused(const child_spec& spec, errc code, std::string_view field, auto_shutdown when = {}) {
  const auto checked = check(spec, when);
  ASSERT_FALSE(checked) << field;
  EXPECT_EQ(checked.error().code(), code) << checked.error();
  EXPECT_NE(checked.error().text().find(field), std::string_view::npos) << checked.error();
  if (!spec.id.empty()) {
    EXPECT_NE(checked.error().text().find("'" + spec.id + "'"), std::string_view::npos) << checked.error();
  }
}

TEST(check_child, takes_every_combination_that_makes_sense) {
  for (const auto how : {restart::permanent, restart::transient, restart::temporary})
    for (const auto type : {child_type::worker, child_type::supervisor})
      for (const auto stop : {shutdown{0s}, shutdown{1ms}, shutdown::brutal_kill(), shutdown::infinity()})
        for (const auto when : {auto_shutdown::never, auto_shutdown::any_significant, auto_shutdown::all_significant})
          for (const bool significant : {false, true}) {
            const child_spec spec =
                good().with({.restart = how, .shutdown = stop, .type = type, .significant = significant});
            const bool sensible = !significant || (how != restart::permanent && when != auto_shutdown::never);
            EXPECT_EQ(check(spec, when).has_value(), sensible);
          }
}

TEST(check_child, wants_an_id) { expect_refused(child(body), errc::invalid, "id"); }

TEST(check_child, wants_a_start) { expect_refused({.id = "a"}, errc::invalid, "start"); }

TEST(check_child, refuses_values_that_are_none) {
  child_spec spec = good();
  spec.restart = static_cast<restart>(7);
  expect_refused(spec, errc::invalid, "restart");
  spec = good();
  spec.type = static_cast<child_type>(7);
  expect_refused(spec, errc::invalid, "type");
}

TEST(check_child, refuses_times_that_make_no_sense) {
  expect_refused(good().with({.shutdown = -1ms}), errc::invalid, "shutdown is negative: -1ms");
  expect_refused(good().with({.start_within = 0s}), errc::invalid, "start_within is 0s");
  expect_refused(good().with({.start_within = -1s}), errc::invalid, "start_within is -1s");
  EXPECT_TRUE(check(good().with({.start_within = 1ns})));
}

task<start_result> starts_something(self&) { co_return start_result{ignored{}}; }

TEST(check_child, refuses_a_mailbox_that_makes_no_sense) {
  expect_refused(good().with({.mailbox = mailbox{.when_full = when_full::sender_waits}}), errc::invalid,
                 "sender_waits needs a capacity");
  expect_refused(child(starts_something).with({.id = "a", .mailbox = mailbox{.capacity = 5}}), errc::bad_combination,
                 "mailbox and a start function");
  EXPECT_TRUE(check(good().with({.mailbox = mailbox{.capacity = 5}})));
}

TEST(check_child, refuses_a_significant_child_of_a_supervisor_that_does_not_care) {
  expect_refused(good().with({.restart = restart::transient, .significant = true}), errc::bad_combination,
                 "auto_shutdown");
}

TEST(check_child, refuses_a_significant_child_that_is_never_down_for_good) {
  expect_refused(good().with({.significant = true}), errc::bad_combination, "permanent",
                 auto_shutdown::any_significant);
}

TEST(check_child, refuses_a_backoff_that_makes_no_sense) {
  const backoff bad{.first = 0s};
  expect_refused(good().with({.backoff = bad}), errc::invalid, "backoff.first is 0s");
  const backoff fine;
  EXPECT_TRUE(check(good().with({.backoff = fine})));
  EXPECT_TRUE(check(good().with({.restart = restart::transient, .backoff = fine})));
  expect_refused(good().with({.restart = restart::temporary, .backoff = fine}), errc::bad_combination, "backoff");
}

TEST(check_child, looks_at_the_fields_in_order) {
  child_spec all_wrong;
  all_wrong.restart = static_cast<restart>(7);
  all_wrong.type = static_cast<child_type>(7);
  all_wrong.significant = true;
  all_wrong.shutdown = -1s;
  expect_refused(all_wrong, errc::invalid, "id");
  all_wrong.id = "a";
  expect_refused(all_wrong, errc::invalid, "start");
  all_wrong.start = good().start;
  expect_refused(all_wrong, errc::invalid, "restart is none");
  all_wrong.restart = restart::permanent;
  expect_refused(all_wrong, errc::bad_combination, "auto_shutdown");
  expect_refused(all_wrong, errc::bad_combination, "permanent", auto_shutdown::all_significant);
  all_wrong.significant = false;
  expect_refused(all_wrong, errc::invalid, "type is none");
  all_wrong.type = child_type::worker;
  expect_refused(all_wrong, errc::invalid, "shutdown is negative");
}

TEST(check_children, refuses_two_of_one_id) {
  const auto checked = check({good("a"), good("b"), good("a")});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code(), errc::duplicate_id);
  EXPECT_NE(checked.error().text().find("'a'"), std::string_view::npos);
}

TEST(check_children, names_the_first_that_is_wrong) {
  const auto checked = check({good("a"), good("b").with({.shutdown = -1s}), good("c").with({.start_within = 0s})});
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().text().find("'b'"), std::string_view::npos) << checked.error();
  const auto twice = check({good("a"), good("a"), good("c").with({.shutdown = -1s})});
  EXPECT_EQ(twice.error().code(), errc::duplicate_id) << "before what comes after it";
}

TEST(check_children, names_all_faults_each_with_its_child) {
  child_spec two_faults = good("b").with({.shutdown = -1s});
  two_faults.start_within = 0s;
  const std::vector<child_spec> specs{good("a"), two_faults, child(body), good("a")};
  const std::vector<spec_fault> faults = find_faults(specs);
  ASSERT_EQ(faults.size(), 4U);
  EXPECT_EQ(faults[0].to_string(), "child 'b': shutdown is negative: -1s");
  EXPECT_EQ(faults[1].to_string(), "child 'b': start_within is 0s; it must be more than 0");
  EXPECT_EQ(faults[2].to_string(), "child 'number 3': it has no id; give it one with .with({.id = \"...\"})");
  EXPECT_EQ(faults[3].code, errc::duplicate_id);
  const auto checked = check(specs);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code(), errc::invalid) << "the code of the first";
  EXPECT_EQ(checked.error().text().find("4 faults: child 'b': shutdown"), 0U) << checked.error();
  for (const spec_fault& f : faults)
    EXPECT_NE(checked.error().text().find(f.to_string()), std::string_view::npos) << checked.error();
}

TEST(check_children, a_path_leads_to_the_child) {
  const std::vector<spec_fault> faults =
      find_faults({good("a").with({.shutdown = -1s})}, auto_shutdown::never, {"top", "storage"});
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].path, (std::vector<std::string>{"top", "storage", "a"}));
  EXPECT_EQ(faults[0].to_string(), "child 'top/storage/a': shutdown is negative: -1s");
}

TEST(check_children, takes_none_and_many) {
  EXPECT_TRUE(check(std::vector<child_spec>{}));
  std::vector<child_spec> many;
  for (int i = 0; i < 1000; ++i) many.push_back(good(std::to_string(i)));
  EXPECT_TRUE(check(many));
}

struct states_backoff_and_name {
  static constexpr child_defaults supervision{.name = "stated", .backoff = backoff{.first = 1s}};
};

TEST(check_child, says_how_to_remove_a_backoff_that_the_type_states) {
  child_spec spec = child<states_backoff_and_name>().with({.restart = restart::temporary});
  const auto refused = check(spec);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("set the field backoff of the spec to std::nullopt"), std::string_view::npos);
  spec.backoff = std::nullopt;
  EXPECT_TRUE(check(spec));
  spec.name = "";
  EXPECT_TRUE(spec.name.empty());
}

}  // namespace
