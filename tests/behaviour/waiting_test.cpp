// Servers whose handlers wait: what happens to everything else meanwhile.
#include "workshop.hpp"

namespace {

using namespace coppice;

struct nap {
  using reply = int;
  std::chrono::nanoseconds time;
  int n = 0;
};
struct ask_other {
  using reply = int;
  ref<plain> whom;
  int n = 0;
};
struct ask_myself {
  using reply = error_code;
};
struct nap_and_fail {
  using reply = int;
};
struct nap_and_stop {
  using reply = int;
};
struct quick {
  using reply = int;
  int n = 0;
};
struct hurried {
  std::string text;
};

struct gone {
  explicit gone(diary* b) : book{b} {}
  gone(const gone&) = delete;
  gone& operator=(const gone&) = delete;
  ~gone() { book->add("frame gone"); }
  diary* book;
};

/// Takes its time.
struct sleepy {
  using protocol = coppice::protocol<nap, ask_other, ask_myself, nap_and_fail, nap_and_stop, quick, hurried>;
  static constexpr bool traps_exits = true;

  explicit sleepy(diary* b) : book{b} {}
  task<int> handle(nap m, self& me) {
    const gone last{book};
    book->add("nap " + std::to_string(m.n));
    co_await me.sleep(m.time);
    book->add("woken " + std::to_string(m.n));
    co_return m.n;
  }
  static task<result<int>> handle(ask_other m) {
    result<int> n = co_await m.whom.call<echo>(m.n);
    co_return n;
  }
  static task<error_code> handle(ask_myself, self& me) {
    const ref<sleepy> mine{me.id()};
    const result<int> n = co_await mine.call<quick>(1);
    co_return n.error().code();
  }
  static task<int> handle(nap_and_fail, self& me) {
    co_await me.sleep(1s);
    throw std::runtime_error{"bad dream"};
  }
  static task<int> handle(nap_and_stop, self& me) {
    me.stop(exit_reason::shutdown());
    co_await me.sleep(1s);
    co_return 8;
  }
  int handle(quick m) const {
    book->add("quick " + std::to_string(m.n));
    return m.n;
  }
  void handle(hurried m) const { book->add("hurried " + m.text); }
  void handle(exited x) const { book->add("exited " + x.reason.to_string()); }
  void terminate(const exit_reason& why) const { book->add("terminate " + why.to_string()); }
  diary* book;
};

class bedroom : public testing::Test {
 protected:
  diary book;
  sim::world world{1};
  runtime& rt = world.add_node().rt();
  ref<sleepy> server = rt.spawn<sleepy>(&book);

  template <class M>
  static task<> calls(self&, pending_call<M> what, std::optional<result<reply_of<M>>>* into) {
    *into = co_await std::move(what);
  }
  template <class M>
  void begin(pending_call<M> what, std::optional<result<reply_of<M>>>& into) {
    rt.spawn(calls<M>, std::move(what), &into);
    EXPECT_TRUE(world.settle());
  }
};

TEST_F(bedroom, other_mail_waits_for_a_handler_and_keeps_its_order) {
  std::optional<result<int>> first;
  std::optional<result<int>> second;
  begin(server.call<nap>(1s, 1), first);
  rt.cast<hurried>(server, "a");
  rt.send(server.id(), hurried{"b"});
  begin(server.call<quick>(2), second);
  rt.exit(server.id(), exit_reason::error("knock"));
  rt.cast<hurried>(server, "c");
  EXPECT_TRUE(world.settle());
  EXPECT_EQ(book.take(), (lines{"nap 1"}));
  EXPECT_FALSE(second);
  world.run_for(1s + a_tick);
  EXPECT_EQ(book.take(),
            (lines{"woken 1", "frame gone", "hurried a", "hurried b", "quick 2", "exited error: knock", "hurried c"}));
  EXPECT_EQ(first, result<int>{1});
  EXPECT_EQ(second, result<int>{2});
}

TEST_F(bedroom, a_caller_that_gave_up_does_no_harm) {
  std::optional<result<int>> got;
  begin(server.call<nap>(1min, 1).within(1s), got);
  world.run_for(1s + a_tick);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error().code(), errc::timeout);
  world.run_for(1min);
  EXPECT_TRUE(book.has("woken 1"));
  EXPECT_TRUE(rt.alive(server.id()));
}

TEST_F(bedroom, a_kill_does_not_wait_for_the_handler) {
  std::optional<result<int>> first;
  std::optional<result<int>> second;
  begin(server.call<nap>(1h, 1).within(forever), first);
  begin(server.call<quick>(2), second);
  rt.kill(server.id());
  EXPECT_TRUE(world.settle());
  EXPECT_EQ(book.take(), (lines{"nap 1", "frame gone"})) << "destructors run, terminate does not";
  EXPECT_EQ(first->error(), (error{errc::exited, "killed"}));
  EXPECT_EQ(second->error(), (error{errc::exited, "killed"}));
}

TEST_F(bedroom, a_stop_waits_for_the_handler_and_its_answer_goes_out) {
  std::optional<result<int>> got;
  begin(server.call<nap>(1s, 1), got);
  rt.cast<hurried>(server, "before");
  rt.send(server.id(), detail::stop_order{exit_reason::shutdown()});
  rt.cast<hurried>(server, "behind");
  world.run_for(1s + a_tick);
  EXPECT_EQ(got, result<int>{1});
  EXPECT_EQ(book.take(), (lines{"nap 1", "woken 1", "frame gone", "hurried before", "terminate shutdown"}));
  EXPECT_FALSE(rt.alive(server.id()));
}

TEST_F(bedroom, a_handler_may_call_others) {
  diary others;
  const ref<plain> other = rt.spawn<plain>(&others, settings{});
  std::optional<result<int>> got;
  begin(server.call<ask_other>(other, 5), got);
  EXPECT_EQ(got, result<int>{5});
  rt.kill(other.id());
  EXPECT_TRUE(world.settle());
  got.reset();
  begin(server.call<ask_other>(other, 5), got);
  EXPECT_EQ(got->error().code(), errc::noproc) << "the answer is a result: an error is passed on";
}

TEST_F(bedroom, a_handler_that_calls_its_own_server_gets_an_error_at_once) {
  std::optional<result<error_code>> got;
  begin(server.call<ask_myself>(), got);
  EXPECT_EQ(got, result<error_code>{error_code{errc::calling_self}});
}

TEST_F(bedroom, a_handler_that_fails_after_a_wait_ends_the_server) {
  std::optional<result<int>> first;
  std::optional<result<int>> second;
  begin(server.call<nap_and_fail>(), first);
  begin(server.call<quick>(2), second);
  world.run_for(1s + a_tick);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->error().code(), errc::exited);
  EXPECT_TRUE(first->error().text().starts_with("error: std::runtime_error: bad dream")) << first->error();
  EXPECT_EQ(second->error(), first->error());
  EXPECT_TRUE(book.take().at(0).starts_with("terminate error: std::runtime_error: bad dream"));
}

TEST_F(bedroom, a_handler_that_stops_and_then_waits_is_let_finish) {
  std::optional<result<int>> got;
  begin(server.call<nap_and_stop>(), got);
  rt.cast<hurried>(server, "too late");
  EXPECT_TRUE(world.settle());
  EXPECT_TRUE(rt.alive(server.id()));
  world.run_for(1s + a_tick);
  EXPECT_EQ(got, result<int>{8});
  EXPECT_EQ(book.take(), (lines{"terminate shutdown"}));
  EXPECT_FALSE(rt.alive(server.id()));
}

TEST_F(bedroom, the_order_of_its_parent_waits_for_the_handler) {
  workshop<waiting> shop;
  shop.start();
  shop.book.take();
  shop.rt().cast<note>(shop.server, "first");
  shop.rt().cast<note>(shop.server, "second");
  shop.tell(exit_reason::shutdown());
  EXPECT_EQ(shop.book.take(), (lines{"note first", "note second", "terminate shutdown", "starter: exited shutdown"}));
}

// ---- the same for many seeds: whatever runs first, messages of one sender stay in order

task<> sends_many(self& me, ref<waiting> to) {
  for (int i = 0; i < 20; ++i) {
    if (i % 3 == 0)
      me.send(to.id(), note{std::to_string(i)});
    else
      to.cast<note>(std::to_string(i));
  }
  co_return;
}
TEST(server_waiting_order, of_one_sender_is_kept_for_every_seed) {
  lines wanted;
  for (int i = 0; i < 20; ++i) wanted.push_back("note " + std::to_string(i));
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    diary book;
    sim::world w{seed};
    runtime& rt = w.add_node().rt();
    const ref<waiting> server = rt.spawn<waiting>(&book, settings{});
    rt.spawn(sends_many, server);
    EXPECT_TRUE(w.settle());
    std::erase(book.all, "init");
    EXPECT_EQ(book.take(), wanted) << "seed " << seed;
  }
}

}  // namespace
