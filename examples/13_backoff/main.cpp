// A web server whose database can't be reached. The database's actor fails whenever it tries to connect; the server,
// its parent, has it started again after a wait that doubles each time. A visitor's question waits in the mailbox of
// the database meanwhile, and is answered when the connection is there.
//
// The waits are simulated, so the program ends at once.
#include <iostream>

#include <coppice/coppice.hpp>
#include <coppice/sim/explore.hpp>

namespace actor = coppice::actor;
using namespace std::chrono_literals;
using actor::context;

namespace {

/// What the database's actor finds when it connects.
struct machine {
  bool up = false;
};

class database {
 public:
  struct query {
    using reply = std::string;
    std::string text;
  };
  using protocol = coppice::protocol<query>;

  explicit database(const machine* where) {
    if (!where->up) throw std::runtime_error{"connection refused"};
  }
  static std::string handle(const query& m) { return "rows for " + m.text; }
};

class web_server {
 public:
  struct get {
    using reply = std::string;
    std::string path;
  };
  using protocol = coppice::protocol<get>;

  explicit web_server(const machine* where) : where_{where} {}
  void handle(actor::started, context& me) { database_ = me.spawn(actor::props<database>(where_)); }
  void handle(const get& m, context& me) {
    const auto rows = me.call(database_.call<database::query>(m.path).within(1min));
    me.reenter_after(rows, [](const coppice::result<std::string>& r, context& again) {
      again.reply(r ? "200 " + *r : std::string{"503"});  // to the visitor who is served now
    });
  }

 private:
  const machine* where_;
  actor::actor_ref<database> database_;
};

struct stopwatch {
  coppice::time_point begin;
  /// To a tenth of a second: timers are a little late, never early.
  [[nodiscard]] std::string at(coppice::time_point now) const {
    using tenths = std::chrono::duration<std::int64_t, std::deci>;
    return std::to_string(100 * std::chrono::duration_cast<tenths>(now - begin).count()) + " ms: ";
  }
};

coppice::task<> visitor(coppice::self& me, actor::actor_ref<web_server> server, stopwatch since) {
  const auto page = co_await server.call<web_server::get>("/trees").within(1min);
  std::cout << since.at(me.now()) << (page ? *page : page.error().to_string()) << '\n';
}

/// Says what is decided about failures.
coppice::task<> narrator(coppice::self& me, stopwatch since) {
  me.subscribe<actor::supervision_event>();
  for (;;) {
    const auto event = co_await me.receive<actor::supervision_event>();
    std::cout << since.at(me.now()) << event.reason.to_string() << "; " << to_string(event.what) << " after "
              << std::chrono::duration_cast<std::chrono::milliseconds>(event.after).count() << " ms\n";
  }
}

}  // namespace

int main() {
  machine far;
  coppice::sim::world w{1};
  coppice::runtime& rt = w.add_node().rt();
  const stopwatch since{w.now()};
  rt.spawn(narrator, since);
  w.settle();

  const auto server = actor::spawn_actor(
      rt, actor::props<web_server>(&far).with({.strategy = actor::exponential_backoff({.first = 100ms, .cap = 1s})}));
  rt.spawn(visitor, server, since);
  w.run_for(2s);
  std::cout << since.at(w.now()) << "the database is up\n";
  far.up = true;
  w.run_for(2s);
}
