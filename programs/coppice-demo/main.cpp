// A wood of a thousand processes that is cut down all the time and grows back. Watch it for ten seconds.
//
// Every "tree" counts what it is sent and crashes now and then; the "gardener" is linked to all of them and plants a
// new one for each that falls; "visitors" call trees all the time. After a while one process falls into an endless
// loop, and the others go on.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <coppice/coppice.hpp>

using namespace std::chrono_literals;
using coppice::pid;
using coppice::ref;
using coppice::self;
using coppice::task;

namespace {

struct settings {
  bool only_help = false;
  int trees = 1000;
  int visitors = 200;
  int seconds = 10;
  double crash_share = 0.0005;  // of visits
};

std::atomic<std::uint64_t> visits{0};
std::atomic<std::uint64_t> failed_visits{0};
std::atomic<std::uint64_t> replanted{0};
std::atomic<bool> demo_is_over{false};

class tree {
 public:
  struct visit {
    using reply = int;
    bool storm = false;
  };
  int handle(visit v) {
    if (v.storm) throw std::runtime_error{"struck by lightning"};
    return ++rings_;
  }

 private:
  int rings_ = 0;
};

struct ask_for_tree {
  using reply = ref<tree>;
  std::uint64_t which;
};

// Plants the trees, is told when one falls, and plants another one in its place: supervision by hand.
task<> gardener(self& me, int trees) {
  me.trap_exits();
  std::vector<ref<tree>> wood;
  std::unordered_map<pid, std::size_t> place_of;
  for (int i = 0; i < trees; ++i) {
    wood.push_back(me.spawn_link<tree>());
    place_of[wood.back().id()] = wood.size() - 1;
  }
  for (;;) {
    auto mail = co_await me.receive<coppice::exited, coppice::request<ask_for_tree>>();
    if (auto* question = std::get_if<coppice::request<ask_for_tree>>(&mail)) {
      question->reply(wood[question->message.which % wood.size()]);
      continue;
    }
    const pid fallen = std::get<coppice::exited>(mail).from;
    const auto found = place_of.find(fallen);
    if (found == place_of.end()) continue;
    const std::size_t place = found->second;
    place_of.erase(found);
    wood[place] = me.spawn_link<tree>();
    place_of[wood[place].id()] = place;
    ++replanted;
  }
}

task<> visitor(self& me, pid gardener_pid, double crash_share) {
  for (;;) {
    const auto chosen = co_await coppice::call<ask_for_tree>(gardener_pid, me.random());
    if (!chosen) co_return;
    for (int i = 0; i < 50; ++i) {
      const bool storm = static_cast<double>(me.random() % 1'000'000) < crash_share * 1'000'000;
      const auto rings = co_await chosen->call<tree::visit>(storm);
      if (rings) {
        ++visits;
      } else {
        ++failed_visits;
        break;  // the tree is gone: ask for another one
      }
    }
    co_await me.sleep(1ms);
  }
}

// Native code that never comes back: the worst a process can do.
task<> endless_loop(self& me) {
  me.label("a process in an endless loop");
  while (!demo_is_over.load(std::memory_order_relaxed)) {}
  co_return;
}

task<> narrator(self& me, coppice::runtime* rt, settings s) {
  me.subscribe<coppice::process_stalled>();
  std::uint64_t visits_before = 0;
  std::uint64_t replanted_before = 0;
  std::puts("second   processes    visits/s   failed   replanted/s   messages handled   stalls");
  for (int second = 1; second <= s.seconds; ++second) {
    auto woken = co_await me.receive<coppice::process_stalled>(1s);
    if (auto* stall = std::get_if<coppice::process_stalled>(&woken)) {
      std::printf("         '%s' (%s) holds a thread; a fresh one has taken over its queue\n", stall->label.c_str(),
                  coppice::to_string(stall->who).c_str());
      co_await me.sleep(400ms);
    }
    const auto counted = rt->counters();
    const std::uint64_t visits_now = visits;
    const std::uint64_t replanted_now = replanted;
    std::printf("%6d %11llu %11llu %8llu %13llu %18llu %8llu\n", second,
                static_cast<unsigned long long>(counted.spawned - counted.ended),
                static_cast<unsigned long long>(visits_now - visits_before),
                static_cast<unsigned long long>(failed_visits.load()),
                static_cast<unsigned long long>(replanted_now - replanted_before),
                static_cast<unsigned long long>(counted.handled), static_cast<unsigned long long>(counted.stalls));
    std::fflush(stdout);
    visits_before = visits_now;
    replanted_before = replanted_now;
    if (second == s.seconds / 2) {
      std::puts("         now one process falls into an endless loop ...");
      me.spawn(endless_loop);
    }
  }
}

/// Nothing, and a line on stderr: they make no sense.
std::optional<settings> read_arguments(int argc, char** argv) {
  settings s;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--seconds" && has_value) {
      s.seconds = std::atoi(argv[++i]);
    } else if (word == "--trees" && has_value) {
      s.trees = std::atoi(argv[++i]);
    } else if (word == "--help") {
      std::puts("usage: coppice-demo [--seconds N] [--trees N]");
      s.only_help = true;
    } else {
      std::fprintf(stderr, "coppice-demo: unknown argument '%s'\nusage: coppice-demo [--seconds N] [--trees N]\n",
                   argv[i]);
      return std::nullopt;
    }
  }
  if (s.seconds < 1 || s.trees < 1) {
    std::fputs("coppice-demo: --seconds and --trees take whole numbers from 1\n", stderr);
    return std::nullopt;
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<settings> given = read_arguments(argc, argv);
  if (!given) return 2;
  const settings s = *given;
  if (s.only_help) return 0;
  coppice::runtime rt{{.level = coppice::log_level::off}};
  std::printf("Coppice: %d processes under a gardener, %d visitors, crashes injected.\n", s.trees, s.visitors);
  const pid keeper = rt.spawn(gardener, s.trees);
  for (int i = 0; i < s.visitors; ++i) rt.spawn(visitor, keeper, s.crash_share);
  const pid story = rt.spawn(narrator, &rt, s);
  rt.wait(story);
  demo_is_over = true;
  std::printf("%llu trees fell and grew back; the wood stands.\n", static_cast<unsigned long long>(replanted.load()));
}
