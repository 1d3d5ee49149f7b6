// Child specs that live with the type, in all their forms.
// Compiled alone: joined with others, its types would have other names.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include <coppice/spec/child.hpp>

namespace app {

using namespace coppice;
using namespace std::chrono_literals;

struct ping {
  using reply = int;
};
struct plain_server {
  static int handle(ping) { return 1; }
};
struct with_arguments {
  with_arguments(std::string, int) {}
  static int handle(ping) { return 1; }
};
struct states_it {
  static constexpr child_defaults supervision{.restart = restart::transient, .shutdown = 2s};
  static int handle(ping) { return 1; }
};
struct names_itself {
  static constexpr child_defaults supervision{
      .id = "the one", .name = "one", .type = child_type::supervisor, .start_within = 3s};
  static int handle(ping) { return 1; }
};
struct owns_it {
  static coppice::child_spec child_spec(int size) {
    return child<plain_server>().with({.id = "pool of " + std::to_string(size), .restart = restart::temporary});
  }
};
template <class T>
struct box {
  static int handle(ping) { return 1; }
};
namespace inner {
struct deep {
  static int handle(ping) { return 1; }
};
}  // namespace inner

task<> body(self&) { co_return; }
task<> body_with(self&, std::string, int) { co_return; }
task<start_result> starts(self& me, int n) {
  if (n == 0) co_return ignored{};
  co_return me.spawn_link(body);
}

}  // namespace app

namespace {

using namespace app;

TEST(child, derives_everything_when_the_type_says_nothing) {
  const child_spec spec = child<plain_server>();
  EXPECT_EQ(spec.id, "plain_server");
  EXPECT_EQ(spec.name, "");
  EXPECT_TRUE(spec.start);
  EXPECT_EQ(spec.restart, restart::permanent);
  EXPECT_EQ(spec.shutdown, std::nullopt);
  EXPECT_EQ(spec.type, child_type::worker);
  EXPECT_FALSE(spec.significant);
  EXPECT_FALSE(spec.backoff);
  EXPECT_EQ(spec.start_within, forever);
  EXPECT_TRUE(check(spec));
}

TEST(child, ids_are_names_of_types_without_their_namespaces) {
  EXPECT_EQ(child<inner::deep>().id, "deep");
  EXPECT_EQ(child<box<inner::deep>>().id, "box<app::inner::deep>");
  EXPECT_EQ(child<box<int>>().id, "box<int>");
}

TEST(child, takes_the_arguments_of_the_constructor) {
  EXPECT_EQ((child<with_arguments>("x", 1).id), "with_arguments");
  EXPECT_TRUE(check(child<with_arguments>("x", 1)));
}

TEST(child, asks_the_type_what_differs) {
  const child_spec spec = child<states_it>();
  EXPECT_EQ(spec.id, "states_it");
  EXPECT_EQ(spec.restart, restart::transient);
  EXPECT_EQ(spec.shutdown, shutdown{2s});
  EXPECT_EQ(spec.type, child_type::worker);
}

TEST(child, takes_id_name_and_type_from_the_type) {
  const child_spec spec = child<names_itself>();
  EXPECT_EQ(spec.id, "the one");
  EXPECT_EQ(spec.name, "one");
  EXPECT_EQ(spec.type, child_type::supervisor);
  EXPECT_EQ(spec.start_within, 3s);
}

TEST(child, lets_the_type_make_the_whole_spec) {
  const child_spec spec = child<owns_it>(8);
  EXPECT_EQ(spec.id, "pool of 8");
  EXPECT_EQ(spec.restart, restart::temporary);
}

TEST(child, with_changes_what_it_is_told_and_nothing_else) {
  const child_spec before = child<states_it>();
  const child_spec spec = before.with({.id = "x", .significant = true});
  EXPECT_EQ(spec.id, "x");
  EXPECT_TRUE(spec.significant);
  EXPECT_EQ(spec.restart, restart::transient) << "as the type says";
  EXPECT_EQ(before.id, "states_it") << "the spec itself is as it was";
  const backoff wait{.first = 1s};
  const child_spec other = child<plain_server>().with({.name = "n",
                                                       .restart = restart::temporary,
                                                       .shutdown = shutdown::brutal_kill(),
                                                       .type = child_type::supervisor,
                                                       .backoff = wait,
                                                       .start_within = 1s,
                                                       .mailbox = mailbox{.capacity = 7}});
  EXPECT_EQ(other.id, "plain_server");
  EXPECT_EQ(other.name, "n");
  EXPECT_EQ(other.restart, restart::temporary);
  EXPECT_EQ(other.shutdown, shutdown::brutal_kill());
  EXPECT_EQ(other.type, child_type::supervisor);
  EXPECT_EQ(other.backoff, wait);
  EXPECT_EQ(other.start_within, 1s);
  EXPECT_EQ(other.mailbox, mailbox{.capacity = 7});
}

TEST(child, with_may_be_used_again_and_the_last_word_counts) {
  const child_spec spec = child<states_it>().with({.id = "a", .restart = restart::temporary}).with({.id = "b"});
  EXPECT_EQ(spec.id, "b");
  EXPECT_EQ(spec.restart, restart::temporary);
}

TEST(child, keeps_copies_of_texts) {
  std::string id = "a name that is longer than a small string is";
  const child_spec spec = child<plain_server>().with({.id = id, .name = id});
  id.assign(id.size(), 'x');
  EXPECT_EQ(spec.id, "a name that is longer than a small string is");
  EXPECT_EQ(spec.name, spec.id);
}

struct cleans_up {
  static void terminate(const exit_reason&) {}
};
struct traps : cleans_up {
  static constexpr bool traps_exits = true;
};
struct means_it : cleans_up {
  static constexpr bool traps_exits = false;
};
// The warning itself cannot be tested here: it would be an error of this file.
static_assert(detail::terminate_in_vain<cleans_up>);
static_assert(!detail::terminate_in_vain<traps> && !detail::terminate_in_vain<means_it>);
static_assert(!detail::terminate_in_vain<plain_server>, "it has no terminate");

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST(child, with_a_terminate_that_does_not_run_is_a_child_all_the_same) {
  EXPECT_EQ(child<cleans_up>().id, "cleans_up");
  EXPECT_TRUE(child<cleans_up>().start);
}
#pragma GCC diagnostic pop

TEST(child, may_be_a_function_which_needs_an_id) {
  EXPECT_EQ(child(body).id, "");
  EXPECT_FALSE(check(child(body)));
  EXPECT_TRUE(check(child(body).with({.id = "b"})));
  EXPECT_TRUE(check(child(body_with, "text", 1).with({.id = "b"})));
}

TEST(child, may_be_a_start_function) {
  const child_spec spec = child(starts, 1).with({.id = "s"});
  EXPECT_TRUE(check(spec));
  EXPECT_EQ(spec.start.how().how, detail::recipe::kind::function) << "and is not taken for a body";
}

TEST(child, children_of_is_a_list_of_types) {
  const std::vector<child_spec> all = children_of<plain_server, states_it, inner::deep>();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].id, "plain_server");
  EXPECT_EQ(all[1].restart, restart::transient);
  EXPECT_EQ(all[2].id, "deep");
  EXPECT_TRUE(check(all));
}

TEST(child, templates_put_their_arguments_first_and_settings_on_top) {
  const auto workers =
      child_template<with_arguments>(std::string{"x"}).with({.restart = restart::temporary, .shutdown = 1s});
  const child_spec spec = workers(42);
  EXPECT_EQ(spec.id, "with_arguments");
  EXPECT_EQ(spec.restart, restart::temporary);
  EXPECT_EQ(spec.shutdown, shutdown{1s});
  EXPECT_EQ(child_template<plain_server>()().id, "plain_server");
  const auto twice = child_template<plain_server>().with({.restart = restart::temporary}).with({.id = "a"});
  EXPECT_EQ(twice().id, "a");
  EXPECT_EQ(twice().restart, restart::temporary) << "what was said before is kept";
}

TEST(child, templates_keep_their_own_copies_of_texts) {
  auto make = [] {
    const std::string id = "a name that is longer than a small string is";
    return child_template<plain_server>().with({.id = id});
  };
  const auto made = make();
  EXPECT_EQ(made().id, "a name that is longer than a small string is");
  EXPECT_EQ(made().with({.id = "other"}).id, "other");
}

// ---- options that own their texts

TEST(child_options_text, may_be_built_from_pieces_and_kept) {
  child_options kept;
  {
    const std::string piece(100, 'x');
    kept = {.id = piece + "1", .name = piece + "2"};
  }
  const child_options copy = kept;
  const child_spec spec = child<plain_server>().with(copy);
  EXPECT_EQ(spec.id, std::string(100, 'x') + "1");
  EXPECT_EQ(spec.name, std::string(100, 'x') + "2");
  EXPECT_EQ(copy.id, kept.id);
}

TEST(child_options_text, bytes_that_were_copied_to_another_place_are_not_freed_twice) {
  // g++ 12 does this to an aggregate that is built in braces inside an expression with co_await.
  option_text original{std::string(100, 'x')};
  alignas(option_text) std::array<std::byte, sizeof(option_text)> copied{};
  std::memcpy(copied.data(), static_cast<const void*>(&original), sizeof(original));
  std::destroy_at(reinterpret_cast<option_text*>(copied.data()));
  EXPECT_EQ(original.view(), std::string(100, 'x'));
}

// ---- descriptions

struct with_facts {
  static constexpr std::string_view kind = "gadget";
  static std::vector<fact> describe(int size) { return {{"size", std::to_string(size)}}; }
  explicit with_facts(int) {}
};

TEST(describe, names_the_kind_of_a_start_and_its_facts) {
  EXPECT_EQ(describe(child<plain_server>()).kind, "server");
  ASSERT_EQ(describe(child<plain_server>()).facts.size(), 1U);
  EXPECT_EQ(describe(child<plain_server>()).facts[0].name, "type");
  EXPECT_NE(describe(child<plain_server>()).facts[0].value.find("plain_server"), std::string::npos);
  const description gadget = describe(child<with_facts>(8));
  EXPECT_EQ(gadget.kind, "gadget");
  EXPECT_EQ(gadget.facts.back(), (fact{"size", "8"}));
  EXPECT_EQ(describe(child_spec{}).kind, "unknown");
  EXPECT_EQ(to_string(description{.kind = "k", .facts = {{"a", "1"}, {"b", "2"}}}), "k (a: 1, b: 2)");
}

TEST(child, of_a_type_without_arguments_shares_its_recipe) {
  EXPECT_EQ(&child<plain_server>().start.how(), &child<plain_server>().start.how());
  EXPECT_NE(&child<with_facts>(1).start.how(), &child<with_facts>(1).start.how());
}

}  // namespace
