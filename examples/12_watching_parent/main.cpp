// A foreman has four holes dug by a digger. A digger that fails is gone for good; the foreman watches it, is
// told why, and hires another. The order that was being handled is lost with it: nobody gets it a second time.
#include <iostream>

#include <coppice/coppice.hpp>

namespace actor = coppice::actor;
using actor::context;

namespace {

struct dig {
  int hole;
};
struct dug {
  int hole;
};

struct digger {
  using protocol = coppice::protocol<dig>;
  static void handle(dig m, context& me) {
    if (m.hole == 2) throw std::runtime_error{"hit a rock"};
    me.reply(dug{m.hole});
  }
};

class foreman {
 public:
  using protocol = coppice::protocol<dug>;
  explicit foreman(int holes) : holes_{holes} {}

  void handle(actor::started, context& me) {
    hire(me);
    order_next(me);
  }
  void handle(dug m, context& me) {
    std::cout << "hole " << m.hole << " is dug\n";
    order_next(me);
  }
  void handle(const actor::terminated& gone, context& me) {
    std::cout << "a digger has ended: " << gone.reason.to_string() << '\n';
    hire(me);
    order_next(me);
  }

 private:
  void hire(context& me) {
    digger_ = me.spawn(actor::props<digger>());
    me.watch(digger_);
  }
  void order_next(context& me) {
    if (ordered_ == holes_) return me.stop();
    me.send_from(me.id(), digger_, dig{++ordered_});
  }
  int holes_;
  int ordered_ = 0;
  actor::actor_ref<digger> digger_;
};

}  // namespace

int main() {
  coppice::runtime rt{{.level = coppice::log_level::off}};
  const auto boss = actor::spawn_actor(rt, actor::props<foreman>(4).with({.strategy = actor::always_stop()}));
  (void)rt.wait(boss.id());
  std::cout << "all is done\n";
}
