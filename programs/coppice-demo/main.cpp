// A shop whose parts fail and are restarted. Each act injects a fault, prints what the supervisors did about it, and
// draws the resulting tree.
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "shop.hpp"

namespace {

using namespace demo;
using coppice::pid;
using coppice::ref;
using coppice::self;
using coppice::task;

struct settings {
  bool only_help = false;
  int seconds = 5;  // how long the storm lasts
};

void say(const std::string& text) {
  std::puts(text.c_str());
  std::fflush(stdout);
}

/// Prints what the supervisors do, until nothing happens for a while.
task<> narrate(self& me) {
  for (;;) {
    const auto news = co_await me.receive<coppice::supervisor_event>(300ms);
    const auto* event = std::get_if<coppice::supervisor_event>(&news);
    if (event == nullptr) co_return;
    say("      " + event->text);
  }
}

task<> show(self& me, pid root) {
  const coppice::tree_node tree = co_await coppice::look_at_tree(me, root);
  say("\n" + coppice::draw(tree));
}

template <class Fault>
task<> act(self& me, pid root, std::string title, std::string victim, Fault fault) {
  say("--- " + title + "\n");
  me.send(victim, fault);
  co_await narrate(me);
  co_await show(me, root);
}

task<> visit_sessions(self& me, pid root) {
  const ref<coppice::dynamic_supervisor> sessions{me.where("sessions")};
  say("--- Sessions come and go under a dynamic supervisor. They are temporary: one that fails is not restarted.\n");
  for (const char* who : {"alice", "bob", "carol"}) {
    auto spec = coppice::child<part>().with({.id = who, .name = who, .restart = coppice::restart::temporary});
    const auto started = co_await coppice::start_child(sessions, std::move(spec));
    if (!started) say(started.error().to_string());
  }
  me.send("bob", part::fail{});
  co_await narrate(me);
  co_await show(me, root);
}

task<> abandon_a_child(self& me, pid root) {
  const ref<coppice::supervisor> pages{me.where("pages")};
  say("--- A part hangs in native code: it does not end even when it is killed. It is abandoned, the others go on.\n");
  me.subscribe<coppice::process_stalled>();
  me.send("account", part::hang{});
  const coppice::process_stalled stuck = co_await me.receive<coppice::process_stalled>();
  say("      '" + stuck.name + "' blocks a thread; a new thread has taken over the queue of that thread");
  auto changed = coppice::child<part>().with({.id = "account", .name = "account", .shutdown = 100ms});
  auto spec = coppice::supervisor_spec{.limit = {.restarts = 2, .within = 5s}, .abandon_after = 200ms};
  spec.children = {std::move(changed)};
  const auto upgraded = co_await coppice::upgrade(pages, std::move(spec));
  const auto stopped = co_await coppice::terminate_child(pages, "account");
  const auto again = co_await coppice::restart_child(pages, "account");
  if (!upgraded || !stopped || !again) say("      the part could not be stopped and started again");
  co_await narrate(me);
  co_await show(me, root);
}

/// Uses the process that has this name at the moment, and crashes it now and then.
task<> customer(self& me, std::string name, std::atomic<std::uint64_t>* served) {
  for (;;) {
    const auto answer = co_await coppice::call<part::work>(me.where(name));
    if (answer) served->fetch_add(1, std::memory_order_relaxed);
    if (me.random() % 2000 == 0) me.send(name, part::fail{});
  }
}

task<> storm(self& me, coppice::runtime* rt, int seconds) {
  say("--- A storm: customers use the storage as fast as they can, and it fails all the time.\n");
  static std::atomic<std::uint64_t> served{0};
  std::vector<pid> customers;
  for (const char* name : {"database", "cache", "search"})
    for (int i = 0; i < 20; ++i) customers.push_back(me.spawn(customer, std::string{name}, &served));
  std::uint64_t before = 0;
  std::uint64_t spawned = rt->counters().spawned;
  for (int i = 1; i <= seconds; ++i) {
    co_await me.sleep(1s);
    const std::uint64_t now = served;
    const std::uint64_t processes = rt->counters().spawned;
    std::printf("      second %d: %llu requests served, %llu parts started again\n", i,
                static_cast<unsigned long long>(now - before), static_cast<unsigned long long>(processes - spawned));
    std::fflush(stdout);
    before = now;
    spawned = processes;
  }
  for (const pid who : customers) me.kill(who);
}

task<coppice::result<void>> play(self& me, coppice::runtime* rt, settings s) {
  me.trap_exits();  // the shop is linked to this process, which must survive the end of the shop
  const coppice::spawn_options linked{.link = true};
  const auto started = co_await coppice::start<coppice::supervisor>(me, linked, shop());
  if (!started) co_return std::unexpected{started.error()};
  const pid root = started->id();
  say("A shop, and its supervisors:\n");
  co_await show(me, root);
  me.subscribe<coppice::supervisor_event>();
  co_await act(me, root, "The cart fails. Its group must start together: one_for_all restarts all three.", "cart",
               part::fail{});
  co_await act(me, root, "The cache fails. The search, started after it, is restarted too: rest_for_one.", "cache",
               part::fail{});
  co_await act(me, root, "The home page fails. Only it is restarted: one_for_one.", "home", part::fail{});
  co_await visit_sessions(me, root);
  mailer::refusals = 3;
  co_await act(me, root, "The mail server is down. The mailer is tried again, later each time; the others go on.",
               "mailer", mailer::fail{});
  co_await abandon_a_child(me, root);
  me.send("home", part::fail{});
  co_await act(me, root, "The pages fail too often: their supervisor gives up, and is itself restarted.", "account",
               part::fail{});
  me.unsubscribe<coppice::supervisor_event>();
  co_await storm(me, rt, s.seconds);
  co_await show(me, root);
  say("--- And an orderly stop: the children stop in the reverse order of their start.\n");
  me.subscribe<coppice::supervisor_event>();
  const auto stopped = co_await coppice::stop(me, root, coppice::exit_reason::shutdown());
  co_await narrate(me);
  co_return stopped;
}

/// Nothing if the arguments are invalid; then a line on stderr says why.
std::optional<settings> read_arguments(int argc, char** argv) {
  settings s;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--seconds" && i + 1 < argc) {
      s.seconds = std::atoi(argv[++i]);
    } else if (word == "--help") {
      std::puts("usage: coppice-demo [--seconds N]   (the length of the storm, by default 5)");
      s.only_help = true;
    } else {
      std::fprintf(stderr, "coppice-demo: unknown argument '%s'\nusage: coppice-demo [--seconds N]\n", argv[i]);
      return std::nullopt;
    }
  }
  if (s.seconds < 1) {
    std::fputs("coppice-demo: --seconds must be a whole number, at least 1\n", stderr);
    return std::nullopt;
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<settings> given = read_arguments(argc, argv);
  if (!given) return 2;
  if (given->only_help) return 0;
  coppice::runtime rt{{.level = coppice::log_level::off}};
  const auto played = rt.await(play, &rt, *given);
  over = true;
  if (!played) {
    std::fprintf(stderr, "coppice-demo: %s\n", played.error().to_string().c_str());
    return 1;
  }
  say("The shop is closed.");
}
