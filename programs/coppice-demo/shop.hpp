#pragma once
// The shop of the demonstration: a tree with every strategy in it.
#include <atomic>
#include <string>
#include <string_view>

#include <coppice/coppice.hpp>

namespace demo {

using namespace std::chrono_literals;

/// Set at the end, to release code that is stuck on purpose.
inline std::atomic<bool> over{false};

/// A part of the shop. It works, fails or hangs on request.
class part {
 public:
  struct work {
    using reply = int;
  };
  struct fail {};
  struct hang {};
  using protocol = coppice::protocol<work, fail, hang>;

  int handle(work) { return ++done_; }
  static void handle(fail) { throw std::runtime_error{"out of luck"}; }
  /// Native code that never returns: the worst a process can do.
  static void handle(hang) {
    while (!over.load(std::memory_order_relaxed)) {}
  }

 private:
  int done_ = 0;
};

/// Its next `refusals` starts fail, as if the service that it needs were down.
class mailer {
 public:
  struct fail {};
  using protocol = coppice::protocol<fail>;
  inline static std::atomic<int> refusals{0};

  coppice::init_result init() {
    if (refusals.load() > 0 && refusals.fetch_sub(1) > 0)
      return coppice::init_result::fail(coppice::error{coppice::errc::noconnection, "the mail server does not answer"});
    return coppice::init_result::ok();
  }
  static void handle(fail) { throw std::runtime_error{"connection reset"}; }
};

/// A part that is registered under its id.
inline coppice::child_spec shop_part(std::string_view id) {
  return coppice::child<part>().with({.id = id, .name = id});
}

inline coppice::supervisor_spec shop() {
  using coppice::child;
  using coppice::strategy;
  using coppice::supervisor;
  const coppice::restart_limit patient{.restarts = 1000, .within = 10s};
  const coppice::supervisor_spec storage{.strategy = strategy::rest_for_one,
                                         .limit = patient,
                                         .children = {shop_part("database"), shop_part("cache"), shop_part("search")}};
  const coppice::supervisor_spec checkout{.strategy = strategy::one_for_all,
                                          .limit = patient,
                                          .children = {shop_part("cart"), shop_part("payment"), shop_part("stock")}};
  const coppice::supervisor_spec pages{.limit = {.restarts = 2, .within = 5s},
                                       .children = {shop_part("home"), shop_part("account")},
                                       .abandon_after = 200ms};
  const coppice::backoff slowly{.first = 200ms, .cap = 5s, .jitter = 0.1};
  return {.limit = patient,
          .children = {child<supervisor>(storage).with({.id = "storage: rest_for_one"}),
                       child<supervisor>(checkout).with({.id = "checkout: one_for_all"}),
                       child<supervisor>(pages).with({.id = "pages: one_for_one", .name = "pages"}),
                       child<mailer>().with({.id = "mailer", .name = "mailer", .backoff = slowly}),
                       child<coppice::dynamic_supervisor>(coppice::dynamic_supervisor_spec{.limit = patient})
                           .with({.id = "sessions: dynamic", .name = "sessions"})},
          .abandon_after = 500ms};
}

}  // namespace demo
