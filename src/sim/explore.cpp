#include <cstdio>
#include <cstdlib>

#include <coppice/sim/explore.hpp>

namespace coppice::sim {

namespace {

struct outcome {
  std::string failure;  // empty: it held
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
  }
}

std::string story(const exploration& how, std::uint64_t seed, const std::string& what) {
  return how.name + ": seed " + std::to_string(seed) + ": " + what +
         "\n  replay: COPPICE_SEED=" + std::to_string(seed) + " " + how.replay;
}

}  // namespace

std::string explore(const exploration& how, const std::function<void(world&)>& property) {
  if (const char* only = std::getenv("COPPICE_SEED")) {  // NOLINT(concurrency-mt-unsafe): nobody sets it meanwhile
    const std::uint64_t seed = std::strtoull(only, nullptr, 10);
    const outcome o = run_once(seed, property, true);
    return o.failure.empty() ? "" : story(how, seed, o.failure);
  }
  for (std::uint64_t seed = how.first_seed; seed < how.first_seed + how.seeds; ++seed) {
    const outcome o = run_once(seed, property, false);
    if (!o.failure.empty()) return story(how, seed, o.failure);
    if (how.repeat_every == 0 || seed % how.repeat_every != 0) continue;
    const outcome again = run_once(seed, property, false);
    if (again.hash != o.hash || !again.failure.empty())
      return story(how, seed, "the same seed left another trace the second time " + again.failure);
  }
  return "";
}

}  // namespace coppice::sim
