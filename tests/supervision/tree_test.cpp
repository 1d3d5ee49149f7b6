// The text of a live tree.
#include <gtest/gtest.h>

#include <coppice/supervision/dynamic_supervisor.hpp>
#include <coppice/supervision/tree.hpp>

#include "family.hpp"

namespace {

using namespace coppice;

tree_node look(family& f, tree_options options = {}) {
  auto into = std::make_shared<tree_node>();
  f.rt().spawn(
      +[](self& me, pid root, tree_options how, std::shared_ptr<tree_node> seen) -> task<> {
        *seen = co_await look_at_tree(me, root, how);
      },
      f.tree.id(), options, into);
  f.settle();
  return *into;
}

TEST(tree, shows_every_child_with_what_became_of_it) {
  family f;
  supervisor_spec web{.limit = {.restarts = 9}, .children = {f.child("listener"), f.child("log")}};
  ASSERT_TRUE(f.start({.limit = {.restarts = 9},
                       .children = {f.child("db", {.backoff = backoff{.first = 2s}}),
                                    coppice::child<supervisor>(web).with({.id = "web"}),
                                    coppice::child<dynamic_supervisor>().with({.id = "pool"})}}));
  f.crash("listener");
  f.crash("db");
  ASSERT_TRUE(f.ask(terminate_child(f.tree, "pool")));
  const std::string text = draw(look(f));
  std::vector<std::string> rows;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    rows.push_back(text.substr(at, text.find('\n', at) - at));
  ASSERT_EQ(rows.size(), 6U) << text;
  EXPECT_TRUE(rows[0].starts_with("root            supervisor  <")) << text;
  EXPECT_TRUE(rows[1].starts_with("├─ db           worker      restarting in ")) << text;
  EXPECT_NE(rows[1].find("restarts 1  last: error: crash"), std::string::npos) << text;
  EXPECT_TRUE(rows[2].starts_with("├─ web          supervisor  <")) << text;
  EXPECT_TRUE(rows[3].starts_with("│  ├─ listener  worker      <")) << text;
  EXPECT_NE(rows[3].find("restarts 1  last: error: crash"), std::string::npos) << text;
  EXPECT_TRUE(rows[4].starts_with("│  └─ log       worker      <")) << text;
  EXPECT_TRUE(rows[5].starts_with("└─ pool         supervisor  down")) << text;
}

TEST(tree, a_busy_supervisor_does_not_hold_up_the_picture) {
  family f;
  supervisor_spec slow{.children = {f.child("a")}};
  ASSERT_TRUE(f.start({.children = {coppice::child<supervisor>(slow).with({.id = "slow"}), f.child("b")}}));
  f.book.starts["late"] = {"hang"};
  const auto inner = ref<supervisor>{f.ask(which_child(f.tree, "slow"))->who};
  const auto pending = f.begin(start_child(inner, f.child("late")));
  f.settle();
  const auto into = std::make_shared<tree_node>();
  f.rt().spawn(
      +[](self& me, pid root, std::shared_ptr<tree_node> seen) -> task<> {
        const tree_options hurried{.patience = std::chrono::milliseconds{10}};
        *seen = co_await look_at_tree(me, root, hurried);
      },
      f.tree.id(), into);
  f.pass(20ms);
  EXPECT_NE(draw(*into).find("(no answer)"), std::string::npos) << draw(*into);
  EXPECT_NE(draw(*into).find("└─ b"), std::string::npos);
}

TEST(tree, of_many_children_some_are_drawn_and_the_rest_is_counted) {
  family f;
  supervisor_spec many;
  for (int i = 0; i < 8; ++i) many.children.push_back(f.child("w" + std::to_string(i)));
  ASSERT_TRUE(f.start(many));
  const tree_options few{.most_children = 3};
  EXPECT_NE(draw(look(f, few), few).find("└─ and 5 more\n"), std::string::npos);
}

TEST(tree, of_a_process_that_has_ended_says_so) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  f.stop();
  EXPECT_EQ(draw(look(f)), "root  " + to_string(f.tree.id()) + " has ended\n");
  EXPECT_TRUE(look(f).ended);
}

TEST(tree, asks_all_supervisors_of_a_level_at_the_same_time) {
  family f;
  std::vector<child_spec> slow;
  for (const std::string id : {"s0", "s1", "s2", "s3"})
    slow.push_back(coppice::child<supervisor>(supervisor_spec{}).with({.id = id}));
  ASSERT_TRUE(f.start({.children = std::move(slow)}));
  for (const std::string id : {"s0", "s1", "s2", "s3"}) {
    f.book.starts[id + " late"] = {"hang"};
    const auto pending =
        f.begin(start_child(ref<supervisor>{f.ask(which_child(f.tree, id))->who}, f.child(id + " late")));
  }
  f.settle();
  const auto took = std::make_shared<std::chrono::nanoseconds>();
  const auto seen = std::make_shared<tree_node>();
  f.rt().spawn(
      +[](self& me, pid root, std::shared_ptr<std::chrono::nanoseconds> time,
          std::shared_ptr<tree_node> into) -> task<> {
        const time_point begin = me.now();
        const tree_options patient{.patience = 1s};
        *into = co_await look_at_tree(me, root, patient);
        *time = me.now() - begin;
      },
      f.tree.id(), took, seen);
  f.pass(10s);
  ASSERT_EQ(seen->children.size(), 4U);
  for (const tree_node& n : seen->children) EXPECT_TRUE(n.silent) << n.child.id;
  EXPECT_GE(*took, 1s);
  EXPECT_LT(*took, 2s) << "four supervisors that do not answer cost one timeout";
}

TEST(tree, shows_what_a_child_is_if_it_shall) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  EXPECT_EQ(draw(look(f)).find("server (type:"), std::string::npos);
  EXPECT_NE(draw(look(f), {.descriptions = true}).find("server (type: "), std::string::npos);
}

}  // namespace
