// The code of docs/guide/applications.md, which quotes it.
#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <thread>

#include <coppice/coppice.hpp>
#include <coppice/sim/explore.hpp>

using namespace std::chrono_literals;

struct counter {
  struct bump {
    using reply = int;
    int by = 1;
  };
  explicit counter(int start) : value{start} {}
  int handle(bump m) { return value += m.by; }
  int value;
};

int demo() {
  return coppice::application{{
                                  .name = "demo",
                                  .supervise = {coppice::child<counter>(41)},
                              }}
      .run();
}

namespace coppice {

struct database {
  struct ping {
    using reply = bool;
  };
  explicit database(std::string where) : url{std::move(where)} {}
  static bool handle(ping) { return true; }
  std::string url;
};
struct web_server {
  struct reload {};
  explicit web_server(int on) : port{on} {}
  static void handle(reload) {}
  int port;
};
struct importer {
  struct nothing {};
  static void handle(nothing) {}
};
result<void> open_files();
task<> say_goodbye(self& me);
task<> import_files(self& me);

int several(const std::string& url) {
  const application storage{{.name = "storage", .supervise = {child<database>(url)}}};
  const application web{{.name = "web", .supervise = {child<web_server>(8080)}, .depends_on = {"storage"}}};
  return applications{web, storage}.run({.stop_within = 30s});
}

std::string next_command();

int with_a_console() {
  const application app{{.name = "web", .supervise = {child<web_server>(8080).with({.name = "web_server"})}}};
  std::thread{[to = app.handle()] {
    while (next_command() == "reload")
      if (!to.send("web_server", web_server::reload{})) std::cout << "not running\n";
  }}.detach();
  return app.run();
}

int import_some_files();

task<> import_all(self& me) {
  const int bad = import_some_files();
  stop_program(me, bad == 0 ? 0 : 5);
  co_return;
}

struct setting {
  std::atomic<int> limit = 0;  // the hook writes it while other processes read it
};
setting& settings() {
  static setting now;
  return now;
}
void read_settings();

struct throttle {
  using protocol = coppice::protocol<config_changed>;
  explicit throttle(self& me) { me.subscribe<config_changed>(); }
  void handle(const config_changed&) { limit = settings().limit; }
  int limit = settings().limit;
};

application with_settings() {
  return {{
      .name = "proxy",
      .supervise = {child<throttle>()},
      .start = read_settings,
      .reload = read_settings,
  }};
}

struct storage_tree {
  static supervisor_spec init(const std::string& url) {
    return {.strategy = strategy::rest_for_one, .children = {child<database>(url), child<importer>()}};
  }
};
application with_a_tree() { return {{.name = "storage", .root = child<storage_tree>("db:1")}}; }

application shop() { return {{.name = "shop", .supervise = {child<storage_tree>("db:1"), child<web_server>(8080)}}}; }

application with_hooks() {
  return {{
      .name = "web",
      .supervise = {child<web_server>(8080)},
      .start = open_files,
      .prep_stop = say_goodbye,
      .stop = [] { std::cout << "closed\n"; },
  }};
}

application a_job() {
  return {{
      .name = "import",
      .supervise = {child(import_files).with({.id = "import", .restart = restart::transient, .significant = true})},
      .auto_shutdown = auto_shutdown::all_significant,
  }};
}

std::string next_command() { return "end"; }
int import_some_files() { return 3; }
void read_settings() { ++settings().limit; }
result<void> open_files() { return {}; }
task<> say_goodbye(self& me) { co_await me.sleep(1s); }
task<> import_files(self& me) { co_await me.sleep(1h); }

TEST(guide_applications, stops_in_order) {
  sim::world w{1};
  sim::node& n = w.add_node();
  running_program running = with_hooks().start(n.rt());
  w.settle();
  EXPECT_FALSE(running.ended());
  n.raise(os_signal::terminate);
  EXPECT_EQ(running.wait().exit_code(), 0);
}

TEST(guide_applications, settings_are_read_again) {
  sim::world w{1};
  sim::node& n = w.add_node();
  running_program running = with_settings().start(n.rt());
  w.settle();
  n.raise(os_signal::hangup);
  w.settle();
  EXPECT_EQ(settings().limit, 2);
  EXPECT_FALSE(running.ended());
}

TEST(guide_applications, a_program_has_a_code_of_its_own) {
  sim::world w{1};
  const application import{{.name = "import", .supervise = {child(import_all).with({.id = "import"})}}};
  running_program running = import.start(w.add_node().rt());
  EXPECT_EQ(running.wait().exit_code(), 5);
}

TEST(guide_applications, a_job_ends_its_program) {
  sim::world w{1};
  running_program running = a_job().start(w.add_node().rt());
  EXPECT_EQ(running.wait().what, program_end::done);
}

TEST(guide_applications, all_would_start) {
  EXPECT_TRUE(with_a_tree().check());
  EXPECT_TRUE(with_hooks().check());
  EXPECT_TRUE(shop().check());
  EXPECT_TRUE(a_job().check());
  EXPECT_NE(&demo, nullptr);
  EXPECT_NE(&several, nullptr);
  EXPECT_NE(&with_a_console, nullptr);
}

}  // namespace coppice
