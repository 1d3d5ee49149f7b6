// A pool of workers under a dynamic supervisor: started when there is work, at most three at a time, and forgotten when
// they are done.
#include <iostream>

#include <coppice/coppice.hpp>

using namespace std::chrono_literals;

namespace {

/// Digs one hole and is done.
class digger {
 public:
  struct dig {
    using reply = std::string;
  };
  using protocol = coppice::protocol<dig>;

  digger(std::string field, int number) : field_{std::move(field)}, number_{number} {}
  std::string handle(dig, coppice::self& me) const {
    me.stop();
    return "hole " + std::to_string(number_) + " in the " + field_;
  }

 private:
  std::string field_;
  int number_;
};

coppice::task<coppice::result<void>> play(coppice::self& me) {
  const coppice::dynamic_supervisor_spec small{.max_children = 3};
  const coppice::spawn_options linked{.link = true};
  const auto pool = co_await coppice::start<coppice::dynamic_supervisor>(me, linked, small);
  if (!pool) co_return std::unexpected{pool.error()};

  // The part of the spec that all diggers share.
  const auto diggers =
      coppice::child_template<digger>("meadow").with({.restart = coppice::restart::transient, .shutdown = 1s});

  std::vector<coppice::ref<digger>> hired;
  for (int i = 1; i <= 4; ++i) {
    const auto who = co_await coppice::start_child(*pool, diggers(i));
    if (who)
      hired.emplace_back(*who);
    else
      std::cout << "number " << i << ": " << coppice::to_string(who.error().code()) << '\n';
  }
  for (const auto& one : hired) {
    const auto done = co_await one.call<digger::dig>();
    std::cout << (done ? *done : done.error().to_string()) << '\n';
  }
  const auto left = co_await coppice::count_children(*pool);
  std::cout << left->active << " are left\n";
  co_return coppice::result<void>{};
}

}  // namespace

int main() {
  coppice::runtime rt{{.level = coppice::log_level::off}};
  const auto played = rt.await(play);
  if (!played) std::cerr << played.error() << '\n';
  return played ? 0 : 1;
}
