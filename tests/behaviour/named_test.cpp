// Servers that are found by their names.
#include <coppice/behaviour/named.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace test;

struct writer {
  struct put {
    using reply = int;
    int by = 0;
  };
  struct add {
    int by = 0;
  };
  struct refuse {
    using reply = int;
  };
  struct hang {
    using reply = int;
  };
  struct crash {
    using reply = int;
  };
  explicit writer(int start) : value{start} {}
  int handle(put m) { return value += m.by; }
  void handle(add m) { value += m.by; }
  static result<int> handle(refuse) { return fail(errc::invalid, "not today"); }
  void handle(hang, reply_to<int> to) { never.push_back(std::move(to)); }
  static int handle(crash) { throw std::runtime_error{"out of ink"}; }
  int value;
  std::vector<reply_to<int>> never{};
};

const named<writer> the_writer{"writer"};

result<ref<writer>> begin(self& me, int start) { return me.spawn<writer>({.name = "writer"}, start); }

task<> calls_by_name(self& me) {
  const auto first = begin(me, 1);
  EXPECT_TRUE(first);
  the_writer.cast<writer::add>(10);
  const result<int> one = co_await the_writer.call<writer::put>(100);
  EXPECT_EQ(one, 111);
  EXPECT_EQ(the_writer.find(me), *first);
  me.kill(first->id());
  const exit_reason killed = co_await end_of(me, first->id());
  const auto second = begin(me, 2);
  EXPECT_TRUE(second);
  const result<int> two = co_await the_writer.call<writer::put>(0);
  EXPECT_EQ(two, 2) << "the new process answers";
}
TEST(named, finds_the_process_that_has_the_name_at_each_use) {
  EXPECT_EQ(in_the_world(calls_by_name), exit_reason::normal());
}

task<> calls_nobody(self& me) {
  the_writer.cast<writer::add>(1);  // a dead letter
  EXPECT_FALSE(the_writer.find(me));
  const result<int> nobody = co_await the_writer.call<writer::put>(1);
  EXPECT_EQ(nobody.error(), (error{errc::noproc, "no process has the name 'writer'"}));
}
TEST(named, says_which_name_nobody_has) { EXPECT_EQ(in_the_world(calls_nobody), exit_reason::normal()); }

task<> calls_in_vain(self& me) {
  EXPECT_TRUE(begin(me, 1));
  const auto start = me.now();
  const result<int> late = co_await the_writer.within(2s).call<writer::hang>();
  EXPECT_EQ(late.error().code(), errc::timeout);
  EXPECT_EQ(late.error().text(), "the call of 'writer' failed");
  EXPECT_GE(me.now() - start, 2s);
  EXPECT_LT(me.now() - start, 3s);
  const result<int> ended = co_await the_writer.call<writer::crash>();
  EXPECT_EQ(ended.error().code(), errc::exited);
  EXPECT_NE(ended.error().to_string().find("out of ink"), std::string::npos) << ended.error();
}
TEST(named, says_its_name_when_a_call_fails) { EXPECT_EQ(in_the_world(calls_in_vain), exit_reason::normal()); }

task<> is_refused(self& me) {
  EXPECT_TRUE(begin(me, 1));
  const result<int> no = co_await the_writer.call<writer::refuse>();
  EXPECT_EQ(no.error(), (error{errc::invalid, "not today"}));
}
TEST(named, passes_on_the_errors_of_the_server_itself) { EXPECT_EQ(in_the_world(is_refused), exit_reason::normal()); }

TEST(named, is_found_by_plain_threads) {
  sim::world w{1};
  sim::node& n = w.add_node();
  EXPECT_FALSE(the_writer.find(n.rt()));
  ASSERT_TRUE(n.rt().spawn<writer>({.name = "writer"}, 5));
  EXPECT_EQ(n.rt().call(the_writer.find(n.rt()).call<writer::put>(1)), 6);
}

}  // namespace
