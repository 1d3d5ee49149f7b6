// How a type says how it is supervised: nothing, what differs from the defaults, or all of it; and what the place of
// use changes.
#include <iostream>

#include <coppice/coppice.hpp>

using namespace std::chrono_literals;

namespace {

/// Says nothing: permanent, five seconds to stop, a worker.
struct cache {};

/// Says what differs.
struct importer {
  static constexpr coppice::child_defaults supervision{.restart = coppice::restart::transient, .shutdown = 30s};
  explicit importer(std::string from) : file{std::move(from)} {}
  std::string file;
};

/// Says it all: one of these is found by the name of its disk, and tried again slowly when the disk is gone.
struct disk {
  explicit disk(std::string device) : path{std::move(device)} {}
  static coppice::child_spec child_spec(const std::string& device) {
    coppice::child_spec spec = coppice::child(start, device);
    spec.id = "disk " + device;
    spec.backoff = coppice::backoff{.first = 1s, .cap = 1min};
    return spec;
  }
  static coppice::task<coppice::start_result> start(coppice::self& supervisor, std::string device) {
    auto made = supervisor.spawn<disk>({.name = device, .link = true}, device);
    if (!made) co_return made.error();
    co_return made->id();
  }
  std::string path;
};

/// A function is a child, too.
coppice::task<> ticker(coppice::self& me, std::chrono::seconds period) {
  for (;;) co_await me.sleep(period);
}

void print(const coppice::child_spec& spec) {
  std::cout << spec.id << ": " << coppice::to_string(spec.restart) << ", " << coppice::to_string(spec.type) << ", "
            << coppice::to_string(spec.shutdown.value_or(coppice::default_shutdown(spec.type)));
  if (spec.backoff) std::cout << ", waits " << coppice::to_string(*spec.backoff);
  std::cout << '\n';
}

}  // namespace

int main() {
  const coppice::supervisor_spec below{.children = coppice::children_of<cache>()};
  const std::vector<coppice::child_spec> children = {
      coppice::child<cache>(),
      coppice::child<cache>().with({.id = "second cache", .restart = coppice::restart::temporary}),
      coppice::child<importer>("in.csv"),
      coppice::child<disk>("sda"),
      coppice::child(ticker, 60s).with({.id = "ticker", .shutdown = coppice::shutdown::brutal_kill()}),
      coppice::child<coppice::supervisor>(below).with({.id = "caches"}),
  };
  for (const auto& spec : children) print(spec);

  auto twice = children;
  twice.push_back(coppice::child<cache>());
  std::cout << coppice::check(twice).error() << '\n';
}
