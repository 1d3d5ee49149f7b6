// Measures this library: coppice_bench WORKLOAD [--threads N] [--scale X] runs one workload and prints "WORKLOAD
// VALUE"; bench/run.py compares the values with those of the programs in bench/peers. --scale 0.1 does a tenth of the
// work.
//
//   coppice_bench --list                                     the workloads and the units of their values
//   coppice_bench --scaling [--rounds N] [--max-threads N]   a table of values with 1, 2, 4, 8 ... threads
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// In workloads.cpp.
std::vector<std::pair<std::string_view, std::string_view>> names_and_units();
double run_workload(std::string_view name, unsigned threads, double scale);  // NaN: there is no workload of that name

namespace {

constexpr std::array<std::string_view, 16> scaling_workloads = {
    "pingpong", "pairs",   "fanin8",    "fanin100",    "ring",       "spawn",  "spawn_polite", "skynet",
    "call",     "call100", "callpairs", "storm_throw", "storm_stop", "timers", "monitor",      "links"};
// The work of these grows with the number of threads, so that a run lasts long enough to keep all threads busy.
constexpr std::array<std::string_view, 2> growing_workloads = {"pairs", "callpairs"};
constexpr unsigned run_timeout_s = 60;

struct options {
  std::string workload;
  bool list = false;
  bool scaling = false;
  unsigned threads = 2;
  double scale = 1;
  unsigned rounds = 3;
  unsigned max_threads = 16;
};

template <class T>
bool read(std::string_view text, T& into) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), into);
  return failed == std::errc{} && end == text.data() + text.size() && into > 0;
}

std::optional<options> parse(std::span<char*> arguments) {
  options o;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    const std::string_view value = i + 1 < arguments.size() ? arguments[i + 1] : "";
    bool fine = true;
    if (word == "--list") {
      o.list = true;
    } else if (word == "--scaling") {
      o.scaling = true;
    } else if (word.starts_with("--")) {
      fine = (word == "--threads" && read(value, o.threads)) || (word == "--scale" && read(value, o.scale)) ||
             (word == "--rounds" && read(value, o.rounds)) || (word == "--max-threads" && read(value, o.max_threads));
      ++i;
    } else {
      fine = o.workload.empty();
      o.workload = word;
    }
    if (!fine) return std::nullopt;
  }
  if (int{o.list} + int{o.scaling} + int{!o.workload.empty()} != 1) return std::nullopt;
  return o;
}

// -------------------------------------------------------------------- scaling

// Runs this program again for one workload, in its own process, and returns its output.
std::string output_of_run(const std::string& workload, unsigned threads, double scale) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return {};
  std::array<std::string, 6> words = {"coppice_bench",         workload,  "--threads",
                                      std::to_string(threads), "--scale", std::to_string(scale)};
  std::array<char*, 7> arguments{};
  std::ranges::transform(words, arguments.begin(), [](std::string& w) { return w.data(); });
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::alarm(run_timeout_s);  // stays in effect after the exec, and ends a run that hangs
    ::execv("/proc/self/exe", arguments.data());
    std::_Exit(127);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 256> piece{};
  for (ssize_t n = 1; (n = ::read(ends[0], piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  if (child > 0) ::waitpid(child, &status, 0);
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text : std::string{};
}

std::optional<double> measure(const std::string& workload, unsigned threads, double scale) {
  const std::string text = output_of_run(workload, threads, scale);
  double value = 0;
  if (!text.starts_with(workload + " ") || !text.ends_with('\n')) return std::nullopt;
  const auto from = workload.size() + 1;
  if (!read(std::string_view{text}.substr(from, text.size() - from - 1), value)) return std::nullopt;
  return value;
}

// The median of a column, if all of its runs gave a value.
std::optional<double> median(std::vector<double> values, unsigned rounds) {
  if (values.size() != rounds) return std::nullopt;
  std::ranges::sort(values);
  return values.size() % 2 == 1 ? values[values.size() / 2]
                                : (values[values.size() / 2 - 1] + values[values.size() / 2]) / 2;
}

// Rounded for a table: two decimals below 10, one below 100, otherwise none.
std::string number(std::optional<double> x) {
  if (!x) return "failed";
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.*f", *x >= 100 ? 0 : *x >= 10 ? 1 : 2, *x);
  return text.data();
}

void print_row(const std::string& workload, std::string_view unit, const options& o, std::span<const unsigned> counts) {
  std::map<unsigned, std::vector<double>> values;
  const bool grows = std::ranges::find(growing_workloads, workload) != growing_workloads.end();
  for (unsigned round = 0; round < o.rounds; ++round)  // round by round, so that a slow minute affects all columns
    for (const unsigned threads : counts)
      if (const auto value = measure(workload, threads, grows ? o.scale * 3 * threads : o.scale))
        values[threads].push_back(*value);
  std::string line = "| " + workload + " | " + std::string{unit} + " |";
  for (const unsigned threads : counts) line += " " + number(median(values[threads], o.rounds)) + " |";
  const auto one = median(values[counts.front()], o.rounds);
  const auto most = median(values[counts.back()], o.rounds);
  std::optional<double> ratio;
  if (one && most) ratio = unit.ends_with("/s") ? *most / *one : *one / *most;
  std::printf("%s %s |\n", line.c_str(), number(ratio).c_str());
  std::fflush(stdout);
}

void print_scaling(const options& o) {
  std::vector<unsigned> counts;
  for (unsigned n = 1; n <= o.max_threads; n *= 2) counts.push_back(n);
  std::string head = "| workload | unit |";
  std::string rule = "|---|---|";
  for (const unsigned n : counts) {
    head += " " + std::to_string(n) + " |";
    rule += "---:|";
  }
  std::printf("%s %u to 1 |\n%s---:|\n", head.c_str(), counts.back(), rule.c_str());
  const auto all = names_and_units();
  for (const std::string_view name : scaling_workloads) {
    const auto found = std::ranges::find(all, name, [](const auto& w) { return w.first; });
    print_row(std::string{name}, found->second, o, counts);
  }
  std::printf(
      "\nMedians of %u runs by number of threads; the last column is the speed-up. pairs and callpairs do three times\n"
      "their usual work for each thread, so that a run lasts long enough.\n",
      o.rounds);
}

}  // namespace

int main(int argc, char** argv) {
  const auto o = parse({argv, static_cast<std::size_t>(argc)});
  if (!o) {
    std::fputs(
        "usage: coppice_bench WORKLOAD [--threads N] [--scale X]\n"
        "       coppice_bench --list\n"
        "       coppice_bench --scaling [--rounds N] [--max-threads N] [--scale X]\n",
        stderr);
    return 2;
  }
  if (o->list) {
    for (const auto& [name, unit] : names_and_units())
      std::printf("%-18s %s\n", std::string{name}.c_str(), std::string{unit}.c_str());
    return 0;
  }
  if (o->scaling) {
    print_scaling(*o);
    return 0;
  }
  const double value = run_workload(o->workload, o->threads, o->scale);
  if (std::isnan(value)) {
    std::fprintf(stderr, "coppice_bench: there is no workload '%s'; see --list\n", o->workload.c_str());
    return 2;
  }
  std::printf("%s %.6g\n", o->workload.c_str(), value);
  std::fflush(stdout);
  std::_Exit(0);  // no orderly end: some workloads leave processes that never end
}
