// An actor lives through the failures of its handlers: its parent says how. Here it goes on as it is, and loses neither
// its address nor the mail that waits.
#include <iostream>
#include <stdexcept>
#include <string>

#include <coppice/coppice.hpp>

namespace actor = coppice::actor;

namespace {

struct clerk {  // a plain class with handlers
  struct file {
    std::string paper;
  };
  struct how_many {
    using reply = int;
  };
  using protocol = coppice::protocol<file, how_many>;

  void handle(const file& m) {
    if (m.paper.empty()) throw std::invalid_argument{"a blank sheet"};
    ++filed;
  }
  [[nodiscard]] int handle(how_many) const { return filed; }
  int filed = 0;
};

struct office {  // a parent answers for those it has spawned
  using protocol = coppice::protocol<clerk::file, clerk::how_many>;

  void handle(actor::started, actor::context& me) { desk = me.spawn(actor::props<clerk>()); }
  void handle(clerk::file m, actor::context& me) { me.forward(desk, std::move(m)); }
  void handle(clerk::how_many m, actor::context& me) { me.forward(desk, m); }
  static actor::directive decide(const actor::child_failure& f) {
    std::cout << "the clerk has failed: " << f.reason << '\n';
    return actor::directive::resume;  // or restart, stop, escalate
  }
  actor::actor_ref<clerk> desk;
};

}  // namespace

int main() {
  coppice::runtime rt;
  const auto papers = actor::spawn_actor(rt, actor::props<office>());
  for (const char* text : {"a letter", "", "an invoice"}) rt.cast<clerk::file>(papers, text);
  const coppice::result<int> filed = rt.call(papers.call<clerk::how_many>());
  std::cout << (filed ? std::to_string(*filed) + " papers filed" : filed.error().to_string()) << '\n';
}
