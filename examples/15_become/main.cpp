// A connection as a state machine: closed, opening, open. Each state is a set of handlers. While it opens, what people
// say is stashed, and answered in order once it is open.
#include <iostream>

#include <coppice/coppice.hpp>

namespace actor = coppice::actor;
using namespace std::chrono_literals;
using actor::behaviour;
using actor::context;

namespace {

class connection {
 public:
  struct open {};
  struct close {};
  struct say {
    using reply = std::string;
    std::string text;
  };
  using protocol = coppice::protocol<open, close, say>;

  // Closed: what the class itself handles.
  static void handle(open, context& me) {
    me.after(10ms, greeted{});  // the other side takes its time
    me.become(opening());
  }
  static void handle(close) {}
  static std::string handle(const say& m) { return "nobody hears '" + m.text + "'"; }

 private:
  struct greeted {};

  static behaviour opening() {
    return behaviour{
        [](say m, context& me) { me.stash(std::move(m)); },  // with the call that waits for its answer
        [](greeted, context& me) {
          me.become(opened());
          me.unstash_all();
        },
    };
  }
  static behaviour opened() {
    return behaviour{
        [said = 0](const say& m, context& me) mutable { me.reply("line " + std::to_string(++said) + ": " + m.text); },
        [](close, context& me) { me.unbecome(); },  // back to the class
    };
  }
};

}  // namespace

int main() {
  coppice::runtime rt{{.level = coppice::log_level::off}};
  const auto line = actor::spawn_actor(rt, actor::props<connection>());
  const auto say = [&](const char* text) {
    const auto answer = rt.call(line.call<connection::say>(text));
    std::cout << (answer ? *answer : answer.error().to_string()) << '\n';
  };
  say("hello");
  rt.cast<connection::open>(line);
  say("one");  // stashed until it is open
  say("two");
  rt.cast<connection::close>(line);
  say("three");
}
