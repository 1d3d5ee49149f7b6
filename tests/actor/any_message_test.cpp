// Handlers for whatever comes.
#include <gtest/gtest.h>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

/// Writes down what it can tell of a message, and hands it on.
class porter {
 public:
  using protocol = coppice::protocol<>;
  porter(std::shared_ptr<lines> book, pid to) : book_{std::move(book)}, to_{to} {}
  void handle(any_message m, context& me) {
    if (const note* n = m.get_if<note>()) book_->push_back("a note: " + n->text);
    if (const question* q = m.get_if<question>()) book_->push_back("a question: " + q->text);
    if (m.get_if<whisper>() != nullptr) book_->push_back("a whisper");
    me.forward(to_, std::move(m));
  }

 private:
  std::shared_ptr<lines> book_;
  pid to_;
};

TEST(any_message, is_known_by_its_type_in_whatever_form_it_comes) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  const auto p = spawn_actor(s.rt, props<porter>(s.book, b.id()));
  (void)s.heard();
  s.rt.send(p.id(), note{"by pid"});
  s.rt.cast<note>(p, "by ref");
  EXPECT_EQ(s.heard(), (lines{"a note: by pid", "a note: by ref", "b: by pid", "b: by ref"}));
  s.in(a, [p](context& me) {
    me.send_from(me.id(), p, note{"by request"});
    me.send_from(me.id(), p.id(), whisper{});
  });
  EXPECT_EQ(s.heard(), (lines{"a note: by request", "a whisper", "b: by request from somebody", "b: whisper"}));
}

TEST(any_message, that_was_looked_at_still_has_its_call) {
  stage s;
  const auto b = s.enter("b");
  const auto p = spawn_actor(s.rt, props<porter>(s.book, b.id()));
  (void)s.heard();
  EXPECT_EQ(s.rt.call(p.call<question>("x")), "x");
  EXPECT_EQ(s.heard(), (lines{"a question: x"}));
}

TEST(any_message, that_is_a_call_and_has_no_handler_is_answered_so) {
  stage s;
  const auto a = s.enter("a");
  s.in(a, [](context& me) { me.become(behaviour{[](const note&) {}}); });
  const auto answer = s.rt.call(a.call<question>("x"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), errc::no_reply);
  EXPECT_NE(answer.error().to_string().find("has no handler for"), std::string::npos) << answer.error();
}

TEST(any_message, is_seen_by_middleware_when_it_is_forwarded) {
  for (const auto how : {routing::round_robin, routing::broadcast}) {
    stage s;
    const std::vector<pid> members = {s.enter("x").id(), s.enter("y").id()};
    int seen = 0;
    actor_options watchful;
    watchful.on_send.emplace_back([&seen](context&, pid, const message_view& m, const std::function<void()>& next) {
      if (const note* n = m.get_if<note>()) seen += n->text == "n" ? 1 : 100;
      next();
    });
    const auto group = spawn_actor(s.rt, group_of(members, {.how = how}).with(watchful));
    (void)s.heard();
    s.rt.cast<note>(group, "n");
    const std::size_t heard = s.heard().size();
    EXPECT_EQ(heard, how == routing::broadcast ? 2U : 1U);
    EXPECT_EQ(seen, static_cast<int>(heard));
  }
}

TEST(middleware, of_sending_keeps_the_sender_and_the_call) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  const auto middle =
      spawn_actor(s.rt, props<behaving>([b] {
                          return behaviour{[b](note m, context& me) { me.forward(b, std::move(m)); },
                                           [](question m, context& me) { me.reply(m.text + "!"); }};
                        }).with({.on_send = {[book = s.book](context&, pid, const message_view&, const auto& next) {
                                   book->push_back("passes");
                                   next();
                                 }}}));
  (void)s.heard();
  s.in(a, [middle](context& me) { me.send_from(me.id(), middle, note{"x"}); });
  EXPECT_EQ(s.heard(), (lines{"passes", "b: x from somebody"}));
  s.in(a, [middle](context& me) { me.call(middle.call<question>("q")).pipe_to(me.id()); });
  EXPECT_EQ(s.heard(), (lines{"passes", "a: text q!"}));
}

}  // namespace
