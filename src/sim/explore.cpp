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

/// How the events of a run are used.
enum class tracing : std::uint8_t { none, kept, printed };

struct outcome {
  std::string failure;  // empty: the property held
  std::uint64_t hash = 0;
  std::string events{};  // the last ones before the failure, if they were kept
};

/// The last events of those whom the failure concerns: a list for each of them, or one of the whole run.
std::string events_of(const world& w, const std::vector<std::string>& concerned, std::size_t most) {
  std::string text;
  const auto add = [&](std::string_view whose, const std::vector<trace_event>& events) {
    if (events.empty()) return;
    text += "\n  the last events" + std::string{whose} + ":";
    for (const trace_event& e : events) text += "\n    " + to_string(e);
  };
  for (const std::string& who : concerned) add(" of " + who, w.last_events_of(who, most));
  if (text.empty()) add("", w.last_events(most));  // nobody was named, or nothing has happened to them
  return text;
}

outcome run_once(const exploration& how, std::uint64_t seed, const std::function<void(world&)>& property, tracing t) {
  world w{seed};
  if (t == tracing::printed)
    w.on_trace(
        [](std::string_view line) { std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data()); });
  if (t != tracing::none && how.events != 0) w.keep_trace();
  try {
    property(w);
    return {.failure = {}, .hash = w.trace_hash()};
  } catch (const violation& x) {
    return {.failure = x.what(), .hash = w.trace_hash(), .events = events_of(w, x.concerned(), how.events)};
  } catch (const std::exception& x) {
    return {.failure = x.what(), .hash = w.trace_hash(), .events = events_of(w, {}, how.events)};
  } catch (...) {
    return {.failure = "threw something that is not a std::exception",
            .hash = w.trace_hash(),
            .events = events_of(w, {}, how.events)};
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
                     tracing t) {
  const last_words crash{story(how, seed, "crashed") + "\n"};
  return run_once(how, seed, property, t);
}

/// The events before the failure `first`. If they were not kept, the seed runs once more for them.
std::string events_before(const outcome& first, const exploration& how, std::uint64_t seed,
                          const std::function<void(world&)>& property, tracing t) {
  if (t != tracing::none || how.events == 0) return first.events;
  const outcome again = run_and_tell(how, seed, property, tracing::kept);
  if (again.failure == first.failure) return again.events;
  return "\n  no events: the seed was run once more for them, and " +
         (again.failure.empty() ? "did not fail" : "failed otherwise: " + again.failure);
}

/// Runs the property with one seed. Returns an empty string if it held, otherwise the report.
std::string try_seed(const exploration& how, std::uint64_t seed, const std::function<void(world&)>& property, tracing t,
                     bool twice) {
  const outcome o = run_and_tell(how, seed, property, t);
  if (!o.failure.empty()) return story(how, seed, o.failure) + events_before(o, how, seed, property, t);
  if (!twice) return {};
  // With a trace: this also shows that making one changes nothing.
  const outcome again = run_and_tell(how, seed, property, t == tracing::none ? tracing::kept : t);
  if (again.hash == o.hash && again.failure.empty()) return {};
  const std::string what = again.failure.empty() ? "the second run of the same seed has a different hash"
                                                 : "the second run of the same seed failed: " + again.failure;
  return story(how, seed, what) + again.events;
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
  if (const auto only = wanted_seed()) return try_seed(how, *only, property, tracing::printed, how.repeat_every != 0);
  if (how.seeds == 0) throw std::invalid_argument{"exploration::seeds is 0; it must be at least 1"};
  for (std::uint64_t seed = how.first_seed; seed < how.first_seed + how.seeds; ++seed) {
    const bool twice = how.repeat_every != 0 && seed % how.repeat_every == 0;
    if (std::string failure = try_seed(how, seed, property, tracing::none, twice); !failure.empty()) return failure;
  }
  return {};
}

}  // namespace coppice::sim
