// A program of three applications: each starts after what it depends on, a part that fails is started again, and all
// stop in reverse order when the last guest leaves. (SIGTERM or Ctrl-C would have stopped it in the same way.)
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

#include <coppice/coppice.hpp>

using namespace std::chrono_literals;

void say(const std::string& line) { std::cout << line + '\n' << std::flush; }

struct pantry {  // a plain class: it knows nothing of applications
  struct take {
    using reply = bool;
    std::string what;
  };
  bool handle(const take& m) { return stock[m.what]-- > 0; }

  std::map<std::string, int> stock{{"pumpkin", 2}, {"water", 1}};
};

struct cook {
  struct soup {
    using reply = std::string;
  };
  using protocol = coppice::protocol<soup>;
  static coppice::task<std::string> handle(soup, coppice::self& me) {
    const coppice::ref<pantry> shelves{me.where("pantry")};
    for (const char* what : {"pumpkin", "water"}) {
      const auto found = co_await shelves.call<pantry::take>(what);
      if (!found || !*found) throw std::runtime_error{"no " + std::string{what} + " left"};
    }
    co_return "pumpkin soup";
  }
};

coppice::task<> guest(coppice::self& me) {
  const coppice::ref<cook> kitchen{me.where("cook")};
  for (int course = 1; course <= 2; ++course) {
    const auto served = co_await kitchen.call<cook::soup>();
    say("  guest: " + (served ? *served : served.error().to_string()));
  }
  while (!me.where("cook") || me.where("cook") == kitchen.id()) co_await me.sleep(1ms);
  say("  guest: there is a new cook already; good night");
  coppice::stop_program(me);
}

coppice::application_hook says(const std::string& line) {
  return [line] { say(line); };
}

int main() {
  const coppice::application storage{{
      .name = "storage",
      .supervise = {coppice::child<pantry>().with({.name = "pantry"})},
      .start = says("storage: opens"),
      .stop = says("storage: closed"),
  }};
  const coppice::application kitchen{{
      .name = "kitchen",
      .supervise = {coppice::child<cook>().with({.name = "cook"})},
      .depends_on = {"storage"},
      .start = says("kitchen: opens"),
      .prep_stop = says("kitchen: last orders"),
      .stop = says("kitchen: closed"),
  }};
  const coppice::application tables{{
      .name = "tables",
      .supervise = {coppice::child(guest).with({.id = "guest", .restart = coppice::restart::transient})},
      .depends_on = {"kitchen"},
      .start = says("tables: open"),
      .stop = says("tables: closed"),
  }};
  coppice::run_options quiet;
  quiet.runtime.level = coppice::log_level::off;
  return coppice::applications{tables, kitchen, storage}.run(quiet);
}
