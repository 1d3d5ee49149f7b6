/// coppice-otp-trace: plays supervision scenarios on Coppice's supervisors and prints their traces, in the words that
/// conformance/otp_trace.escript uses for OTP's supervisors. See conformance/README.md.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>

#include "generate.hpp"
#include "play.hpp"

namespace {

constexpr const char* usage =
    "usage: coppice-otp-trace FILE                            prints the trace of a scenario\n"
    "       coppice-otp-trace --out FOLDER FILE...            the trace of x.txt becomes FOLDER/x.trace\n"
    "       coppice-otp-trace --generate SEED                 prints a random scenario\n"
    "       coppice-otp-trace --generate FIRST COUNT FOLDER   writes FOLDER/SEED.txt for COUNT seeds\n";

/// An error with its exit status: 2 for invalid input, 1 for a scenario that fails.
struct trouble {
  std::string text;
  int status = 2;
};

std::string read(const std::string& file) {
  std::ifstream in{file, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{in}, {}};
  if (!in) throw trouble{file + ": can't be read"};
  return text;
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out{file, std::ios::binary};
  out << text;
  out.close();
  if (!out) throw trouble{file.string() + ": can't be written"};
}

std::string play_file(const std::string& file) {
  try {
    const otp_trace::scenario s = otp_trace::parse(read(file));
    std::string trace = otp_trace::play(s, 1);
    // The trace must not depend on which process runs first.
    for (const std::uint64_t seed : {2U, 3U}) {
      const std::string other = otp_trace::play(s, seed);
      if (other == trace) continue;
      std::string both = file;
      both.append(": the trace depends on the schedule. One is\n").append(trace).append("another is\n").append(other);
      throw trouble{both, 1};
    }
    return trace;
  } catch (const otp_trace::bad_scenario& bad) {
    throw trouble{file + ":" + std::to_string(bad.line()) + ": " + bad.what()};
  } catch (const std::runtime_error& failed) {
    throw trouble{file + ": " + failed.what(), 1};
  }
}

/// Plays all scenarios, even if one of them fails.
int play_files(std::span<const std::string> files, const std::filesystem::path& folder) {
  int status = 0;
  for (const std::string& file : files) {
    try {
      write(folder / std::filesystem::path{file}.stem().concat(".trace"), play_file(file));
    } catch (const trouble& t) {
      std::cerr << t.text << '\n';
      status = std::max(status, t.status);
    }
  }
  return status;
}

std::uint64_t number(const std::string& word) {
  std::uint64_t n = 0;
  const char* const end = word.data() + word.size();
  const auto [stopped, problem] = std::from_chars(word.data(), end, n);
  if (problem != std::errc{} || stopped != end) throw trouble{"'" + word + "' is not a number\n" + usage};
  return n;
}

int run(const std::vector<std::string>& words) {
  const std::string first = words.empty() ? "" : words[0];
  if (first == "--help") {
    std::cout << usage;
  } else if (first == "--out" && words.size() > 2) {
    return play_files(std::span{words}.subspan(2), words[1]);
  } else if (first == "--generate" && words.size() == 2) {
    std::cout << otp_trace::generate(number(words[1]));
  } else if (first == "--generate" && words.size() == 4) {
    const std::uint64_t begin = number(words[1]);
    for (std::uint64_t seed = begin; seed - begin < number(words[2]); ++seed)
      write(std::filesystem::path{words[3]} / (std::to_string(seed) + ".txt"), otp_trace::generate(seed));
  } else if (words.size() == 1 && !first.starts_with("-")) {
    std::cout << play_file(first);
  } else {
    throw trouble{usage};
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const trouble& t) {
    std::cerr << t.text << '\n';
    return t.status;
  }
}
