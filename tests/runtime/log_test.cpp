// What reaches the log sinks, and what they make of it.
#include <gtest/gtest.h>

#include <coppice/sim/world.hpp>

#include "recorder.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct logged_node {
  explicit logged_node(runtime_options how) : rt{add(world, log, std::move(how))} {}
  static runtime& add(sim::world& w, const std::shared_ptr<recorder>& into, runtime_options how) {
    how.processes = 1000;
    how.log = into;
    return w.add_node("n", std::move(how)).rt();
  }
  std::shared_ptr<recorder> log = std::make_shared<recorder>();
  sim::world world{1};
  runtime& rt;
};

std::string printed(const log_record& record) {
  testing::internal::CaptureStderr();
  stderr_sink()->write(record);
  return testing::internal::GetCapturedStderr();
}

TEST(log_line, has_quotes_in_its_text_as_they_are) {
  const std::string line =
      printed({.level = log_level::error, .text = R"(application "web" ended)", .fields = {}, .part = "application"});
  EXPECT_TRUE(line.ends_with("Z error application  application \"web\" ended\n")) << line;
}

TEST(log, has_no_fields_without_a_value) {
  logged_node n{{.level = log_level::info}};
  n.rt.log(log_level::info, "x", {{"empty", ""}, {"full", "1"}});
  EXPECT_EQ(n.log->all()[0].fields, (std::map<std::string, std::string>{{"full", "1"}}));
}

TEST(log, cuts_long_texts_and_says_how_long_they_were) {
  logged_node n{{.level = log_level::info}};
  n.rt.log(log_level::info, std::string(100'000, 'x'), {{"long", std::string(longest_log_text + 1, 'y')}});
  n.rt.log(log_level::info, std::string(longest_log_text, 'x'), {{"short", std::string(longest_log_text, 'y')}});
  const auto seen = n.log->all();
  EXPECT_EQ(seen[0].text, std::string(longest_log_text, 'x') + "... (cut, it has 100000 bytes)");
  EXPECT_EQ(seen[0].fields.at("long"), std::string(longest_log_text, 'y') + "... (cut, it has 4097 bytes)");
  EXPECT_EQ(seen[1].text.size(), longest_log_text);
  EXPECT_EQ(seen[1].fields.at("short").size(), longest_log_text);
}

TEST(log, cuts_no_character_in_two) {
  logged_node n{{.level = log_level::info}};
  n.rt.log(log_level::info, std::string(longest_log_text - 1, 'x') + "\u20ac and more");  // three bytes in UTF-8
  n.rt.log(log_level::info, std::string(5000, '\x80'));                                   // not UTF-8
  EXPECT_TRUE(n.log->all()[0].text.starts_with(std::string(longest_log_text - 1, 'x') + "... (cut"));
  EXPECT_TRUE(n.log->all()[1].text.starts_with(std::string(longest_log_text - 3, '\x80') + "... (cut"));
}

// ---- floods

task<> fails(self&, std::string text) {
  throw std::runtime_error{text};
  co_return;
}
struct other_failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
task<> fails_otherwise(self&) {
  throw other_failure{"once"};
  co_return;
}

TEST(log, of_processes_that_fail_alike_is_limited_and_hides_no_other_failure) {
  logged_node n{{}};
  for (int i = 0; i < 100; ++i) n.rt.spawn(fails, std::to_string(i));
  n.rt.spawn(fails_otherwise);
  n.world.settle();
  EXPECT_EQ(n.log->all().size(), 11U);
  n.world.run_for(2s);
  n.rt.spawn(fails, std::string{"again"});
  n.world.settle();
  const auto seen = n.log->all();
  ASSERT_EQ(seen.size(), 13U);
  EXPECT_EQ(seen[11].text, "process ended");
  EXPECT_EQ(seen[11].fields.at("not_logged"), "90");
  EXPECT_TRUE(seen[12].fields.at("reason").contains("again"));
}

TEST(log, of_a_flood_says_at_the_end_of_the_runtime_what_was_left_out) {
  const auto log = std::make_shared<recorder>();
  {
    sim::world world{1};
    runtime& rt = logged_node::add(world, log, {});
    for (int i = 0; i < 100; ++i) rt.spawn(fails, std::to_string(i));
    world.settle();
    EXPECT_EQ(log->all().size(), 10U);
  }
  ASSERT_EQ(log->all().size(), 11U);
  EXPECT_EQ(log->all()[10].fields.at("not_logged"), "90");
}

TEST(log, of_a_flood_is_complete_at_the_level_debug) {
  logged_node n{{.level = log_level::debug}};
  for (int i = 0; i < 100; ++i) n.rt.spawn(fails, std::to_string(i));
  n.world.settle();
  EXPECT_EQ(n.log->all().size(), 100U);
}

// ---- parts

constexpr log_part db{"db"};

TEST(log_levels, of_a_part_replace_the_level_for_that_part_only) {
  logged_node n{{.level = log_level::warning, .levels = {{"db", log_level::debug}, {"runtime", log_level::off}}}};
  n.rt.log(db, log_level::debug, "query");
  n.rt.log(log_level::info, "of the program");
  n.rt.log(log_level::warning, "of the program");
  n.rt.spawn(fails, std::string{"unheard"});
  n.rt.spawn(+[](self& me) -> task<> {
    me.log(db, log_level::debug, "query of a process");
    co_return;
  });
  n.world.settle();
  std::vector<std::string> seen;
  for (const auto& l : n.log->all()) seen.push_back(l.part + " " + l.text);
  EXPECT_EQ(seen, (std::vector<std::string>{"db query", "program of the program", "db query of a process"}));
}

TEST(log_levels, without_levels_of_parts_hold_for_all) {
  logged_node n{{.level = log_level::info}};
  n.rt.log(db, log_level::debug, "query");
  n.rt.log(db, log_level::info, "slow query");
  ASSERT_EQ(n.log->all().size(), 1U);
  EXPECT_EQ(n.log->all()[0].text, "slow query");
}

// ---- JSON

TEST(json_log, is_one_object_with_all_that_the_record_says) {
  const log_field fields[] = {{"pid", "<1.4.0>"}, {"reason", "say \"no\"\n"}};
  const wall_time at{std::chrono::sys_days{std::chrono::year{2026} / 11 / 15} + 9h + 30min + 123ms};
  EXPECT_EQ(
      to_json({.level = log_level::error, .at = at, .text = "process ended", .fields = fields, .part = "runtime"}),
      R"({"time":"2026-11-15T09:30:00.123Z","level":"error","part":"runtime","text":"process ended",)"
      R"("fields":{"pid":"<1.4.0>","reason":"say \"no\"\n"}})");
  EXPECT_TRUE(to_json({.text = "x", .fields = {}}).ends_with(R"("part":"","text":"x","fields":{}})"));
}

std::string json_of(std::string_view text) {
  const std::string line = to_json({.text = text, .fields = {}});
  const std::size_t begin = line.find("\"text\":") + 7;
  return line.substr(begin, line.find(",\"fields\"") - begin);
}

TEST(json_log, escapes_what_JSON_forbids_and_keeps_UTF_8) {
  EXPECT_EQ(json_of("a\\b\"c\r\t"), R"("a\\b\"c\r\t")");
  EXPECT_EQ(json_of(std::string{"\0\x1f\x7f", 3}), R"("\u0000\u001f\u007f")");
  EXPECT_EQ(json_of("\u00e4\u20ac\U0001f600"), "\"\u00e4\u20ac\U0001f600\"");
}

TEST(json_log, replaces_bytes_that_are_not_UTF_8) {
  EXPECT_EQ(json_of("\x80"), R"("\ufffd")") << "a continuation alone";
  EXPECT_EQ(json_of("\xc3("), R"("\ufffd(")") << "a continuation is missing";
  EXPECT_EQ(json_of("\xe2\x82"), R"("\ufffd\ufffd")") << "cut off";
  EXPECT_EQ(json_of("\xc0\xaf"), R"("\ufffd\ufffd")") << "too long for its value";
  EXPECT_EQ(json_of("\xe0\x80\xaf"), R"("\ufffd\ufffd\ufffd")") << "too long for its value";
  EXPECT_EQ(json_of("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")") << "half of a pair";
  EXPECT_EQ(json_of("\xf0\x80\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")") << "too long for its value";
  EXPECT_EQ(json_of("\xf4\x90\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")") << "beyond the last character";
  EXPECT_EQ(json_of("\xff"), R"("\ufffd")");
}

TEST(json_log, is_valid_for_all_pairs_of_bytes) {
  for (int i = 0; i < 256; ++i)
    for (int j = 0; j < 256; ++j) {
      const std::string two{static_cast<char>(i), static_cast<char>(j)};
      const std::string json = json_of(two);
      ASSERT_TRUE(json.starts_with('"') && json.ends_with('"'));
      for (std::size_t k = 1; k + 1 < json.size(); ++k) {
        const auto c = static_cast<unsigned char>(json[k]);
        ASSERT_GE(c, 0x20U);
        ASSERT_NE(c, '"') << "only behind a backslash, which the next line skips";
        if (c == '\\') ++k;
      }
    }
}

TEST(json_log, writes_a_line_for_each_record) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const auto sink = json_sink(file);
  sink->write({.text = "one", .fields = {}});
  sink->write({.text = "two\nlines", .fields = {}});
  std::rewind(file);
  std::string all(1000, '\0');
  all.resize(std::fread(all.data(), 1, all.size(), file));
  std::fclose(file);
  EXPECT_EQ(std::ranges::count(all, '\n'), 2);
  EXPECT_TRUE(all.starts_with("{\"time\":")) << all;
  EXPECT_TRUE(all.ends_with("\"text\":\"two\\nlines\",\"fields\":{}}\n")) << all;
}

}  // namespace
