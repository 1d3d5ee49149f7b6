// The loop of servers whose handlers wait, for all their classes.
#include <coppice/base/ensure.hpp>
#include <coppice/runtime/detail/serving.hpp>

namespace coppice::detail {

serving::~serving() {
  if (started) std::exchange(started, {}).destroy();
  answer_all(process_.host(), loss_by(process_.id()));  // a killed server has not done this yet
  stop_serving();
}

void serving::wait_for_frame(std::coroutine_handle<> frame, finish_function take_value) {
  ensure(!started, "a server called a member while another one runs");
  started = frame;
  finish = take_value;
}

open_call serving::take_asked() {
  ensure(asked.fail != nullptr, "a request of a server was answered twice");
  return std::exchange(asked, {});
}

void serving::reply(envelope* answer) {
  const open_call call = take_asked();
  if (stopped())
    answers.push_back({call.caller, answer});
  else
    process_.host().send(call.caller, signal::reply, answer);
}

void serving::drop_asked() {
  if (asked.fail == nullptr) return;
  const open_call lost = take_asked();
  if (std::uncaught_exceptions() > 0 && turn_here() != nullptr)
    unanswered.push_back(lost);  // until the exit reason of the server is known
  else
    answer_dropped(process_.host(), process_.id(), lost);
}

void serving::fail() {
  turn* t = turn_here();
  t->ends = false;
  why = reason_of_failure(*t);
}

void serving::answer_all(kernel& k, loss how) {
  for (const held_answer& h : std::exchange(answers, {})) {
    if (k.crashed())
      discard(k, h.answer);
    else
      k.send(h.to, signal::reply, h.answer);
  }
  for (const open_call& c : std::exchange(unanswered, {}))
    if (!k.crashed()) c.fail(k, c.caller, c.call, error_of(how));
}

member_done::member_done(serving& s) noexcept
    : serving_{s}, frame_{std::exchange(s.started, {})}, link_{.owner = &frame_}, finish_{s.finish} {}

void member_done::await_resume() {
  if (!frame_) return;
  promise_base::rethrow_failure();
  if (finish_ != nullptr) finish_(serving_, frame_);
}

void finish_init(serving& s, std::coroutine_handle<> done) {
  s.begun = std::coroutine_handle<task_promise<init_result>>::from_address(done.address()).promise().take();
}

namespace {

/// A message and its envelope, while a handler uses the message. Its destructor drops the request if the handler has
/// not answered it.
class opened_message {
 public:
  opened_message(serving& s, kernel& k, envelope* e) noexcept : serving_{s}, kernel_{k}, envelope_{e} {}
  ~opened_message() {
    serving_.drop_asked();
    discard(kernel_, envelope_, {.what = loss::kind::vanished});  // destroys the message and answers nobody
  }
  opened_message(const opened_message&) = delete;
  opened_message& operator=(const opened_message&) = delete;
  [[nodiscard]] envelope& get() const noexcept { return *envelope_; }

 private:
  serving& serving_;
  kernel& kernel_;
  envelope* envelope_;
};

runner runner_for(const server_type& type, const envelope& e) {
  if (e.type->server.for_server == type.mark) return e.type->server.run;
  // Sent through a `ref` of another class, perhaps a base class, which may have a message in common with this one.
  return type.find(e.type->untyped != nullptr ? *e.type->untyped : *e.type);
}

/// One message after the other, until the server stops. Throws what a handler throws.
task<void> serve_mail(void* object, const server_type& type, serving& s, self& me) {
  while (!s.stopped()) {
    if (s.continues) {
      s.continues = false;
      if (type.handle_continue == nullptr) continue;
      type.handle_continue(object, me, s);
      co_await member_done(s);
      continue;
    }
    std::optional<any_message> mail;
    const std::chrono::nanoseconds limit = type.idle_after != nullptr ? type.idle_after(object) : no_timeout;
    if (limit != no_timeout) {
      auto came = co_await me.receive<any_message>(limit);
      if (auto* m = std::get_if<any_message>(&came)) mail.emplace(std::move(*m));
      if (!mail) {
        type.handle_idle(object, me, s);
        co_await member_done(s);
        continue;
      }
    } else {
      any_message m = co_await me.receive<any_message>();
      mail.emplace(std::move(m));
    }
    if (auto order = order_to_end(me.host(), me.process(), mail->content())) {
      s.why = std::move(order);
      continue;
    }
    const runner run = runner_for(type, mail->content());
    if (run == nullptr) {
      me.host().note_unhandled(me.id(), mail->content());
      continue;
    }
    const opened_message e{s, me.host(), mail->release()};
    run(object, me, s, e.get());
    co_await member_done(s);
  }
}

task<void> terminate_server(void* object, const server_type& type, serving& s, self& me) {
  s.terminates_with = *s.why;
  if (type.terminate != nullptr) type.terminate(object, me, s);
  co_await member_done(s);
}

}  // namespace

task<void> serve_object(void* object, const server_type& type, serving& s, self& me, start_ack ack) {
  s.type = &type;
  if (type.init != nullptr) type.init(object, me, s);
  co_await member_done(s);
  const bool begun = s.begun.what() == init_result::kind::ok;
  if (!begun) s.why = s.begun.reason();
  ack.give(me.host(), std::move(s.begun));
  if (begun) {
    try {
      co_await serve_mail(object, type, s, me);
    } catch (...) {
      s.fail();
    }
    try {
      co_await terminate_server(object, type, s, me);
    } catch (...) {
      s.fail();
    }
  }
  ensure(s.why.has_value(), "a server ends without a reason");
  const exit_reason why = *s.why;
  s.answer_all(me.host(), {loss::kind::ended, &why});
  s.stop_serving();
  co_await me.exit(why);
}

}  // namespace coppice::detail
