// Options as users write them, left out or in braces. With -O2 -Wall, g++ 12 has warned of them in the user's code.
#include <coppice/coppice.hpp>

using namespace std::chrono_literals;

struct cache {
  struct get {
    using reply = std::string;
  };
  static coppice::result<std::string> handle(get) { return "value"; }
};

int with_a_limit(const coppice::application& app) { return app.run({.stop_within = 30s}); }
int with_defaults(const coppice::application& app) { return app.run({}); }
int with_more(const coppice::application& app) {
  return app.run({.runtime = {.workers = 2}, .stop_on = {}, .args = {"a", "b"}});
}
coppice::running_program on_a_runtime(const coppice::application& app, coppice::runtime& rt) { return app.start(rt); }
coppice::result<int> of_a_runtime() {
  coppice::runtime rt{{.workers = 4, .budget = 32}};
  const coppice::ref<cache> at = rt.spawn<cache>();
  auto text = rt.call(at.call<cache::get>());
  if (!text) return std::unexpected{std::move(text.error())};
  const auto moved = std::move(text);
  return static_cast<int>(moved->size());
}
