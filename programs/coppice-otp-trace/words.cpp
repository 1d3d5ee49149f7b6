#include "words.hpp"

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

namespace otp_trace {
namespace {

template <class T>
using choices = std::span<const std::pair<std::string_view, T>>;

template <class T>
T choose(choices<T> from, const std::string& word, const std::string& name) {
  std::string expected;
  for (const auto& [text, value] : from) {
    if (text == word) return value;
    expected += (expected.empty() ? "" : ", ") + std::string{text};
  }
  throw bad_line{name + " is '" + word + "', but can only be one of: " + expected};
}

using std::pair;
constexpr pair<std::string_view, coppice::restart> restarts[] = {{"permanent", coppice::restart::permanent},
                                                                 {"transient", coppice::restart::transient},
                                                                 {"temporary", coppice::restart::temporary}};
constexpr pair<std::string_view, coppice::auto_shutdown> auto_shutdowns[] = {
    {"never", coppice::auto_shutdown::never},
    {"any_significant", coppice::auto_shutdown::any_significant},
    {"all_significant", coppice::auto_shutdown::all_significant}};
constexpr pair<std::string_view, coppice::strategy> strategies[] = {{"one_for_one", coppice::strategy::one_for_one},
                                                                    {"one_for_all", coppice::strategy::one_for_all},
                                                                    {"rest_for_one", coppice::strategy::rest_for_one}};
constexpr pair<std::string_view, bool> truths[] = {{"true", true}, {"false", false}};
constexpr pair<std::string_view, start> starts[] = {
    {"ok", start::ok}, {"fail", start::fail}, {"ignore", start::ignore}};

coppice::shutdown parse_shutdown(const std::string& word) {
  if (word == "brutal_kill") return coppice::shutdown::brutal_kill();
  if (word == "infinity") return coppice::shutdown::infinity();
  return std::chrono::milliseconds{parse_number(word, "shutdown (milliseconds, brutal_kill or infinity)", 0)};
}

std::vector<start> parse_starts(const std::string& list) {
  std::vector<start> all;
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t comma = std::min(list.find(',', from), list.size());
    all.push_back(choose<start>(starts, list.substr(from, comma - from), "an element of starts"));
    from = comma + 1;
  }
  return all;
}

void set_option(options& o, const std::string& key, const std::string& value, options_of whom) {
  const bool of_worker = whom == options_of::worker;
  if (key == "restart") {
    o.restart = choose<coppice::restart>(restarts, value, key);
  } else if (key == "shutdown") {
    o.shutdown = parse_shutdown(value);
  } else if (key == "significant") {
    o.significant = choose<bool>(truths, value, key);
  } else if (key == "auto_shutdown" && !of_worker) {
    o.auto_shutdown = choose<coppice::auto_shutdown>(auto_shutdowns, value, key);
  } else if (key == "trap" && of_worker) {
    o.trap = choose<bool>(truths, value, key);
  } else if (key == "stubborn" && of_worker) {
    o.stubborn = choose<bool>(truths, value, key);
  } else if (key == "starts" && of_worker) {
    o.starts = parse_starts(value);
  } else {
    throw bad_line{(of_worker ? "a worker" : "a supervisor") + std::string{" has no key '"} + key +
                   "'; it has restart, shutdown, significant" +
                   (of_worker ? ", trap, stubborn and starts" : " and auto_shutdown")};
  }
}

}  // namespace

std::vector<std::string> words_of(std::string_view line) {
  constexpr std::string_view blanks = " \t\r";
  line = line.substr(0, line.find('#'));
  std::vector<std::string> words;
  for (;;) {
    const std::size_t from = line.find_first_not_of(blanks);
    if (from == std::string_view::npos) return words;
    line.remove_prefix(from);
    const std::size_t length = std::min(line.find_first_of(blanks), line.size());
    words.emplace_back(line.substr(0, length));
    line.remove_prefix(length);
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

options parse_options(const std::vector<std::string>& words, std::size_t first, options_of whom) {
  options o;
  std::vector<std::string> seen;
  for (std::size_t i = first; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (equals == std::string::npos) throw bad_line{"'" + words[i] + "' is not key=value"};
    const std::string key = words[i].substr(0, equals);
    if (std::ranges::find(seen, key) != seen.end()) throw bad_line{"the key '" + key + "' is given twice"};
    seen.push_back(key);
    set_option(o, key, words[i].substr(equals + 1), whom);
  }
  return o;
}

coppice::strategy parse_strategy(const std::string& word) {
  return choose<coppice::strategy>(strategies, word, "the strategy");
}

int parse_number(const std::string& word, const std::string& name, int least) {
  constexpr int most = 24 * 60 * 60 * 1000;
  int value = 0;
  const char* const end = word.data() + word.size();
  const auto [stopped, problem] = std::from_chars(word.data(), end, value);
  if (problem != std::errc{} || stopped != end || value < least || value > most)
    throw bad_line{name + " is '" + word + "', but must be a whole number from " + std::to_string(least) + " to " +
                   std::to_string(most)};
  return value;
}

}  // namespace otp_trace
