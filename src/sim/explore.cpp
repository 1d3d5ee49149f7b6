#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <coppice/sim/explore.hpp>

namespace coppice::sim {

namespace {

struct outcome {
  std::string failure;  // empty: the property held
  std::uint64_t hash = 0;
};

outcome run_once(std::uint64_t seed, const std::function<void(world&)>& property, bool traced) {
  world w{seed};
  if (traced)
    w.on_trace(
        [](std::string_view line) { std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data()); });
  try {
    property(w);
    return {.failure = {}, .hash = w.trace_hash()};
  } catch (const std::exception& x) {
    return {.failure = x.what(), .hash = w.trace_hash()};
  } catch (...) {
    return {.failure = "threw something that is not a std::exception", .hash = w.trace_hash()};
  }
}

std::string story(const exploration& how, std::uint64_t seed, const std::string& what) {
  return how.name + ": seed " + std::to_string(seed) + ": " + what +
         "\n  replay: COPPICE_SEED=" + std::to_string(seed) + " " + how.replay;
}

}  // namespace

namespace {

/// While it exists, a crash (SIGSEGV, SIGABRT, ...) prints the seed and the replay command on standard error.
class last_words {
 public:
  explicit last_words(const std::string& words) {
    size_ = std::min(words.size(), sizeof text_);
    std::memcpy(text_, words.data(), size_);
    for (std::size_t i = 0; i < signals.size(); ++i) {
      struct sigaction act{};
      act.sa_handler = &speak;
      act.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
      ::sigaction(signals[i], &act, &before_[i]);
    }
  }
  ~last_words() {
    for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &before_[i], nullptr);
  }
  last_words(const last_words&) = delete;
  last_words& operator=(const last_words&) = delete;

 private:
  static void speak(int number) {
    (void)!::write(STDERR_FILENO, text_, size_);
    for (std::size_t i = 0; i < signals.size(); ++i)
      if (signals[i] == number) ::sigaction(number, &before_[i], nullptr);
    ::raise(number);
  }
  static constexpr std::array<int, 5> signals = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  static inline std::array<struct sigaction, 5> before_{};
  static inline char text_[512];
  static inline std::size_t size_ = 0;
};

outcome run_and_tell(const exploration& how, std::uint64_t seed, const std::function<void(world&)>& property,
                     bool traced) {
  const last_words crash{story(how, seed, "crashed") + "\n"};
  return run_once(seed, property, traced);
}

/// Runs the property with one seed. Returns an empty string if it held, otherwise the report.
std::string try_seed(const exploration& how, std::uint64_t seed, const std::function<void(world&)>& property,
                     bool traced, bool twice) {
  const outcome o = run_and_tell(how, seed, property, traced);
  if (!o.failure.empty()) return story(how, seed, o.failure);
  if (!twice) return {};
  const outcome again = run_and_tell(how, seed, property, traced);
  if (again.hash == o.hash && again.failure.empty()) return {};
  return story(how, seed,
               again.failure.empty() ? "the second run of the same seed left a different trace"
                                     : "the second run of the same seed failed: " + again.failure);
}

/// The seed in COPPICE_SEED, if it is set: only that seed is run. Nothing: all seeds are run.
std::optional<std::uint64_t> wanted_seed() {
  const char* text = std::getenv("COPPICE_SEED");  // NOLINT(concurrency-mt-unsafe): nobody sets it meanwhile
  if (text == nullptr || *text == 0) return std::nullopt;
  const std::string_view digits{text};
  std::uint64_t seed = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
  if (failed != std::errc{} || end != digits.data() + digits.size())
    throw std::invalid_argument{"COPPICE_SEED is '" + std::string{digits} + "'; it must be the number of a seed"};
  return seed;
}

}  // namespace

std::string explore(const exploration& how, const std::function<void(world&)>& property) {
  if (const auto only = wanted_seed()) return try_seed(how, *only, property, true, how.repeat_every != 0);
  if (how.seeds == 0) throw std::invalid_argument{"exploration::seeds is 0; it must be at least 1"};
  for (std::uint64_t seed = how.first_seed; seed < how.first_seed + how.seeds; ++seed) {
    const bool twice = how.repeat_every != 0 && seed % how.repeat_every == 0;
    if (std::string failure = try_seed(how, seed, property, false, twice); !failure.empty()) return failure;
  }
  return {};
}

}  // namespace coppice::sim
