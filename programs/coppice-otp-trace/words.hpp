#pragma once
/// Words of a scenario's line, and what they mean.
#include "scenario.hpp"

namespace otp_trace {

/// A fault in a line; the parser adds the number of the line.
class bad_line : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The words of a line, without its comment.
[[nodiscard]] std::vector<std::string> words_of(std::string_view line);
[[nodiscard]] std::string joined(const std::vector<std::string>& words);

// These throw `bad_line`.

enum class options_of { supervisor, worker };
/// From the `key=value` words that begin at `first`.
[[nodiscard]] options parse_options(const std::vector<std::string>& words, std::size_t first, options_of whom);
[[nodiscard]] coppice::strategy parse_strategy(const std::string& word);
/// A whole number from `least` to a day's worth of milliseconds.
[[nodiscard]] int parse_number(const std::string& word, const std::string& name, int least);

}  // namespace otp_trace
