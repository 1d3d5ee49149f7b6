// What is refused before anything starts, and in which order the rest would be started.
#include "troupe.hpp"

namespace coppice {

struct idle_part {
  struct nothing {};
  static void handle(nothing) {}
};
struct own_tree {
  static supervisor_spec init() { return {.children = {child<idle_part>()}}; }
};

namespace {

application named(std::string name, std::vector<std::string> depends_on = {}) {
  return {{.name = std::move(name), .depends_on = std::move(depends_on)}};
}

std::string order_of(const applications& all) {
  const auto order = all.start_order();
  if (!order) return std::string{order.error().text()};
  std::string text;
  for (const std::string& each : *order) text += (text.empty() ? "" : " ") + each;
  return text;
}

TEST(start_order, is_as_given_where_nothing_depends_on_anything) {
  EXPECT_EQ(order_of({named("c"), named("a"), named("b")}), "c a b");
}

TEST(start_order, puts_each_after_what_it_depends_on) {
  EXPECT_EQ(order_of({named("web", {"cache", "storage"}), named("cache", {"storage"}), named("storage")}),
            "storage cache web");
  EXPECT_EQ(order_of({named("d", {"b", "c"}), named("b", {"a"}), named("c", {"a"}), named("a")}), "a b c d");
}

TEST(check_applications, takes_what_makes_sense) {
  EXPECT_TRUE((application{{.name = "a", .supervise = {child<idle_part>()}}}.check()));
  EXPECT_TRUE((application{{.name = "a", .root = child<own_tree>()}}.check()));
  EXPECT_TRUE((application{{.name = "a", .root = child<supervisor>(supervisor_spec{})}}.check()));
}

TEST(check_applications, refuses_an_application_without_a_name_and_says_which) {
  EXPECT_EQ(order_of({named("a"), named("")}), "application number 2 has no name: give it one with .name");
}

TEST(check_applications, refuses_two_of_one_name) {
  EXPECT_EQ(order_of({named("a"), named("b"), named("a")}),
            "two applications have the name \"a\": number 1 and number 3");
}

TEST(check_applications, refuses_a_dependency_that_is_not_there_and_names_those_that_are) {
  EXPECT_EQ(order_of({named("storage"), named("web", {"storge"})}),
            "application \"web\" depends on \"storge\", and no application has that name; there are: "
            "\"storage\", \"web\"");
}

TEST(check_applications, refuses_circles_and_prints_them) {
  EXPECT_EQ(
      order_of({named("top", {"a"}), named("a", {"b"}), named("b", {"c"}), named("c", {"free", "a"}), named("free")}),
      "applications depend on each other in a cycle: \"a\" -> \"b\" -> \"c\" -> \"a\"");
  EXPECT_EQ(order_of({named("a", {"a"})}), "applications depend on each other in a cycle: \"a\" -> \"a\"");
}

TEST(check_applications, refuses_a_list_of_children_beside_a_root_supervisor) {
  const application both{{.name = "web", .supervise = {child<idle_part>()}, .root = child<own_tree>()}};
  const auto answer = both.check();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), errc::invalid);
  EXPECT_EQ(
      answer.error().text(),
      "application \"web\" has a list of children (.supervise) and a supervisor of its own (.root): leave one out, "
      "or put the children into the supervisor");
}

TEST(check_applications, refuses_settings_of_a_supervisor_beside_a_root_supervisor) {
  const application both{{.name = "web", .limit = {.restarts = 3}, .root = child<own_tree>()}};
  const auto answer = both.check();
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().text().find("(.strategy, .limit, .auto_shutdown)"), std::string_view::npos);
}

TEST(check_applications, refuses_a_root_that_is_not_a_supervisor) {
  const application worker_on_top{{.name = "web", .root = child<idle_part>()}};
  const auto answer = worker_on_top.check();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().text(),
            "application \"web\", .root: child 'idle_part' is not a supervisor; put it into .supervise");
}

TEST(check_applications, refuses_children_that_no_supervisor_would_take) {
  const application twins{{.name = "web", .supervise = {child<idle_part>(), child<idle_part>()}}};
  const auto answer = twins.check();
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().text().find("application \"web\": two children have the id 'idle_part'"),
            std::string_view::npos)
      << answer.error();
}

TEST(check_applications, names_all_that_is_wrong_at_once) {
  const std::string text = order_of({named(""), named("a", {"b"}), named("a")});
  for (const char* each : {"number 1 has no name", "two applications have the name", "depends on \"b\""})
    EXPECT_NE(text.find(each), std::string::npos) << text;
}

TEST(check_applications, refuses_none_at_all) {
  EXPECT_EQ(order_of(applications{std::vector<application>{}}), "there is no application to run");
}

TEST(check_applications, is_done_before_anything_is_started) {
  troupe t;
  t.start({application{t.app("a")}, named("b", {"c"})});
  EXPECT_EQ(t.outcome(), "refused");
  EXPECT_EQ(t.code(), 2);
  EXPECT_EQ(t.running->controller(), pid{});
  EXPECT_EQ(t.running->wait().what, program_end::refused);
  t.running->stop();
  EXPECT_EQ(t.book.take(), lines{});
  EXPECT_EQ(t.processes(), 0U);
}

TEST(check_applications, covers_the_options_of_the_run) {
  troupe t;
  t.start({application{t.app("a")}}, {.stop_within = -1s});
  EXPECT_EQ(t.code(), 2);
  EXPECT_EQ(t.text(), "stop_within is -1s; it must not be negative");
}

}  // namespace
}  // namespace coppice
