#pragma once
/// Actors: objects behind a pid that survive their failures. Every actor supervises the actors it has spawned.
///
///     struct counter {
///       using protocol = coppice::protocol<bump, reset>;          // the messages it handles
///       int handle(bump m) { return value += m.by; }              // the return value answers a call,
///       void handle(reset, context& me) { me.reply(done{}); }     // and so does `reply`
///       void handle(started, context& me);                        // optional: see life_messages.hpp
///       int value = 0;
///     };
///     const actor_ref<counter> counters = spawn_actor(rt, props<counter>());
///
/// When a handler throws, the actor and its descendants are suspended, and the strategy of its parent decides: see
/// strategy.hpp. As a child of a supervisor: `child<any_actor>(props<counter>())`.
#include <coppice/actor/actor_ref.hpp>
#include <coppice/actor/props.hpp>
#include <coppice/spec/child.hpp>

namespace coppice::detail {
/// Calls `start()`. If the name is taken, the error carries the process that `where()` finds. If `where()` finds none,
/// that process has ended since and the name is free again: `start()` is retried.
template <class A, class Start, class Where>
[[nodiscard]] std::expected<actor_ref<A>, spawn_error> start_with_name(Start start, Where where) {
  for (;;) {
    const result<pid> started = start();
    if (started) return actor_ref<A>{*started};
    if (started.error().code() != errc::name_taken) return std::unexpected{spawn_error{started.error()}};
    if (const pid running = where()) return std::unexpected{spawn_error{started.error(), running}};
  }
}
}  // namespace coppice::detail

namespace coppice::actor {

// ---- templates of `context`

template <class A>
result<pid> context::start(const props<A>& how, std::string name) {
  ensure_may_spawn();
  if (how.settings()->guardian) throw std::invalid_argument{"props with a guardian are for top-level actors"};
  detail::birth with{.parent = id(), .linked = true};
  with.called = detail::birth::by(name.empty() ? std::string{} : path() + "/" + name, {});
  result<pid> started =
      detail::spawn_actor<A>(*turn_.k, std::move(with), how.settings(),
                             {.failures = detail::decided_by::parent, .suspended = core_.suspensions()});
  if (started) add_child(*started, std::move(name), how.settings()->shutdown);
  return started;
}

template <class A>
actor_ref<A> context::spawn(const props<A>& how) {
  return actor_ref<A>{detail::or_throw(start(how, {}))};
}

template <class A>
std::expected<actor_ref<A>, spawn_error> context::start_named(const props<A>& how, std::string_view name) {
  const std::string checked = child_name(name);
  return detail::start_with_name<A>([&] { return start(how, checked); }, [&] { return where(path() + "/" + checked); });
}

template <class A>
std::expected<actor_ref<A>, spawn_error> context::spawn(const naming& as, const props<A>& how) {
  if (as.name.has_value() == as.prefix.has_value())
    throw std::invalid_argument{"naming: an actor has either a name or a prefix"};
  if (as.name) return start_named(how, *as.name);
  for (;;) {
    const auto started = start_named(how, *as.prefix + std::to_string(core_.next_number()));
    if (started || started.error().code() != errc::name_taken) return started;
  }
}

}  // namespace coppice::actor

namespace coppice::detail {
/// The type of a message of `context::send_from`. To an `actor_ref`, the message carries its handler.
template <class M>
[[nodiscard]] const message_type& sent_type(pid) noexcept {
  return plain<sent<M>>;
}
template <class M, class A>
[[nodiscard]] const message_type& sent_type(const actor_ref<A>&) noexcept {
  must_receive<A, M>();
  return sent_to<A, M>;
}
}  // namespace coppice::detail

namespace coppice::actor {

template <class Make>
void context::post_with(pid to, const detail::message_type& type, const void* content, Make&& make) {
  const auto send_it = [&] {
    if (detail::envelope* e = make()) turn_.k->send(to, detail::signal::message, e);
  };
  if (core_.settings->on_send.empty()) [[likely]]
    send_it();
  else
    through_middleware(to, type, content, send_it);
}

template <class M, class... Args>
[[gnu::always_inline]] inline void context::post_mail(pid to, const detail::message_type& type, Args&&... args) {
  if (core_.settings->on_send.empty()) [[likely]]
    return turn_.k->send(to, detail::signal::message, detail::make_mail<M>(type, std::forward<Args>(args)...));
  // These two are made only here, so that on the fast path neither the context nor the message needs an address.
  M kept(std::forward<Args>(args)...);
  context me{core_, turn_, origin_, message_};
  me.post_with(to, detail::plain<M>, &kept, [&] { return detail::make_mail<M>(type, std::move(kept)); });
}

template <class M>
[[gnu::always_inline]] inline void context::send(pid to, M&& message) {
  using body = std::decay_t<M>;
  post_mail<body>(to, detail::plain<body>, std::forward<M>(message));
}

template <class M, class A, class... Args>
[[gnu::always_inline]] inline void context::cast(const actor_ref<A>& to, Args&&... args) {
  post_mail<M>(to.id(), actor_ref<A>::template cast_type<M>(), std::forward<Args>(args)...);
}

template <class To, class M>
void context::send_from(pid sender, const To& to, M&& message) {
  using body = std::decay_t<M>;
  post_with(pid_of(to), detail::plain<body>, &message, [&] {
    return detail::make_letter<sent<body>>(detail::sent_type<body>(to), sender, std::forward<M>(message));
  });
}

template <callable_message M>
future<reply_of<M>> context::call(pending_call<M> question) {
  using R = reply_of<M>;
  if (question.timeout().count() < 0) throw std::invalid_argument{"context::call: the timeout is negative"};
  auto state = std::make_shared<detail::future_state<R>>();
  state->reply = &detail::plain<detail::reply_body<R>>;
  state->target = question.to();
  expect_answer(state, question.timeout());
  if (state->target.node() != turn_.k->node()) {
    state->remote = true;
    turn_.k->await_remote_reply(id(), state->number, state->target, &detail::answer_error<R>);
  }
  if (core_.settings->on_send.empty()) [[likely]] {
    turn_.k->send(state->target, detail::signal::message, question.release(id(), state->number));
    return future<R>{std::move(state)};
  }
  // `kept` outlives the envelope: middleware may look at the message after `next` has sent it.
  M kept(std::move(question.message()));
  post_with(state->target, detail::plain<M>, &kept, [&] {
    auto* e = detail::make_letter<detail::request_body<M>>(question.type(), std::move(kept));
    e->body.caller = id();
    e->body.call = state->number;
    return e;
  });
  return future<R>{std::move(state)};
}

template <class V>
void context::reply(V&& value) {
  using R = std::decay_t<V>;
  static_assert(!std::is_same_v<R, const char*>, "reply with a std::string: a const char* is not converted to it");
  if (origin_.call != 0 && origin_.reply != &detail::plain<detail::reply_body<R>>)
    return detail::fail_call(*turn_.k, origin_,
                             error{errc::no_reply, "the answer to " + std::string{message_.name} +
                                                       " has the wrong type, " + std::string{type_name<R>()}});
  const auto give = [&] {
    if (origin_.call != 0)
      answer_if_asked<R>(result<R>{std::forward<V>(value)});
    else  // to a call that was answered before, or that another process answers: a dead letter
      turn_.k->send(origin_.called ? pid{} : sender(), detail::signal::message,
                    detail::make_mail<R>(detail::plain<R>, std::forward<V>(value)));
  };
  if (core_.settings->on_send.empty())
    give();
  else
    through_middleware(sender(), detail::plain<R>, &value, give);
}

template <class R>
reply_to<R> context::defer() {
  if (origin_.call == 0 || origin_.reply != &detail::plain<detail::reply_body<R>>)
    throw std::logic_error{"context::defer: nobody waits for a " + std::string{type_name<R>()} + " as the answer to " +
                           std::string{message_.name}};
  return detail::defer_reply<R>(*turn_.k, *turn_.p, id(), origin_.sender, std::exchange(origin_.call, 0));
}

template <class To, class M>
void context::forward(const To& to, M&& message) {
  using body = std::decay_t<M>;
  if constexpr (std::is_same_v<body, any_message>) {
    static_assert(std::is_rvalue_reference_v<M&&>, "an any_message cannot be copied: pass it with std::move");
    const detail::message_type& type = detail::content_of(*close_mail(message).type);
    post_with(pid_of(to), type, message.opened(), [&] { return message.release(); });
  } else {
    post_with(pid_of(to), detail::plain<body>, &message,
              [&] { return detail::rebuild(origin_, std::forward<M>(message)); });
  }
}

template <class M>
void context::stash(M&& message) {
  using body = std::decay_t<M>;
  detail::envelope* e = nullptr;
  if constexpr (std::is_same_v<body, any_message>) {
    static_assert(std::is_rvalue_reference_v<M&&>, "an any_message cannot be copied: pass it with std::move");
    e = &close_mail(message);
    (void)message.release();
  } else {
    // A stashed `terminated` counts as not received: `unwatch` can still prevent its delivery.
    if constexpr (std::is_same_v<body, terminated>) core_.parts().watches.add_ended(message.who);
    e = detail::rebuild(origin_, std::forward<M>(message));
  }
  put_into_stash(e);
}

template <class M>
actor_timer context::after(std::chrono::nanoseconds delay, M message) {
  if (delay.count() < 0) throw std::invalid_argument{"context::after: the delay is negative"};
  const std::uint64_t number = core_.next_number();
  add_timer(number, delay, {},
            detail::make_letter<detail::timed<M>>(detail::plain<detail::timed<M>>, number, std::move(message)));
  return actor_timer{number};
}

template <class M>
actor_timer context::every(std::chrono::nanoseconds period, M message) {
  if (period.count() <= 0) throw std::invalid_argument{"context::every: the period must be positive"};
  const std::uint64_t number = core_.next_number();
  detail::timer_entry entry{.armed = {}, .period = period, .make_next = [number, message] {
                              return static_cast<detail::envelope*>(detail::make_letter<detail::timed<M>>(
                                  detail::plain<detail::timed<M>>, number, message));
                            }};
  detail::envelope* first = entry.make_next();
  add_timer(number, period, std::move(entry), first);
  return actor_timer{number};
}

template <class R, class F>
void context::reenter_after(const future<R>& f, F then) {
  const std::shared_ptr<detail::future_state<R>>& state = f.state();
  detail::must_be_owner(*state, id());
  detail::mail_origin mine = origin_;
  origin_.call = 0;  // the continuation answers the call
  detail::add_continuation(*state, {core_.instance.generation(), detail::held_call{*turn_.k, mine}, &message_,
                                    [state = state.get(), then = std::move(then)](context& me) mutable {
                                      then(std::as_const(*state->value), me);
                                    },
                                    turn_.trace});
  if (state->done)
    turn_.k->send(id(), detail::signal::notice,
                  detail::make_letter<detail::continuation_ready>(detail::plain<detail::continuation_ready>, state));
}

}  // namespace coppice::actor

namespace coppice::detail {
template <class R, class F>
[[nodiscard]] result<R> run_blocking(F& f) noexcept {
  try {
    if constexpr (std::is_void_v<R>)
      return f(), result<R>{};
    else
      return result<R>{std::in_place, f()};
  } catch (const std::exception& x) {
    return std::unexpected{error{errc::exited, x.what()}};
  } catch (...) {
    return std::unexpected{error{errc::exited, "unknown exception"}};
  }
}
}  // namespace coppice::detail

namespace coppice::actor {

template <class F>
future<std::invoke_result_t<F&>> context::blocking(F f, std::chrono::nanoseconds timeout) {
  using R = std::invoke_result_t<F&>;
  auto state = std::make_shared<detail::future_state<R>>();
  state->reply = &detail::plain<detail::reply_body<R>>;
  state->target = id();
  expect_answer(state, timeout);
  turn_.k->submit_blocking(
      [f = std::move(f), runs_in = turn_.k->weak_from_this(), who = id(), number = state->number]() mutable {
        result<R> value = detail::run_blocking<R>(f);
        if (const auto k = runs_in.lock())
          k->send_late(who, detail::signal::reply,
                       detail::make_letter<detail::reply_body<R>>(detail::plain<detail::reply_body<R>>, number,
                                                                  std::move(value)));
      },
      type_name<F>());
  return future<R>{std::move(state)};
}

// ---- promises

}  // namespace coppice::actor

namespace coppice {
template <class R>
promised<R> make_promise(actor::context& me) {
  auto state = std::make_shared<detail::future_state<R>>();
  state->reply = &detail::plain<detail::reply_body<R>>;
  me.expect_answer(state, forever);
  return {detail::promise_for<R>(me.turn_.k->weak_from_this(), *state), future<R>{std::move(state)}};
}
}  // namespace coppice

namespace coppice::actor {

// ---- top-level actors

/// Spawns a top-level actor, from a plain thread (`Host` is a `runtime`) or from a process. It has no parent; see
/// `actor_options::guardian`. Throws `spawn_failed`.
template <class Host, class A>
actor_ref<A> spawn_actor(Host& host, const props<A>& how) {
  return actor_ref<A>{detail::or_throw(detail::spawn_actor<A>(host.host(), {}, how.settings(), {}))};
}
/// The same, registered under a name: `spawn_actor(rt, {.name = "clicks"}, props<counter>())`.
template <class Host, class A>
[[nodiscard]] std::expected<actor_ref<A>, spawn_error> spawn_actor(Host& host, const naming& as, const props<A>& how) {
  if (!as.name || as.name->empty() || as.prefix)
    return std::unexpected{spawn_error{{errc::invalid, "a top-level actor needs a name that is not empty"}}};
  const auto start = [&] {
    detail::birth with{};
    with.called = detail::birth::by(*as.name, {});
    return detail::spawn_actor<A>(host.host(), std::move(with), how.settings(), {});
  };
  return detail::start_with_name<A>(start, [&] { return host.host().where(*as.name); });
}
/// Asks an actor to stop. It is never killed for taking too long: only a parent has time limits for its children.
template <class Host>
void stop_actor(Host& host, pid who) {
  detail::send_stop(host.host(), who);
}
template <class Host, class A>
void stop_actor(Host& host, const actor_ref<A>& who) {
  stop_actor(host, who.id());
}
/// Stops an actor after it has handled its mail, as `context::poison` does.
template <class Host>
void poison_actor(Host& host, pid who) {
  host.host().send(who, detail::signal::message,
                   detail::make_letter<detail::poison_pill>(detail::plain<detail::poison_pill>));
}
template <class Host, class A>
void poison_actor(Host& host, const actor_ref<A>& who) {
  poison_actor(host, who.id());
}

}  // namespace coppice::actor

namespace coppice::detail {
template <class A>
class actor_recipe final : public recipe {
 public:
  explicit actor_recipe(props<A> p) : recipe{kind::handshake}, props_{std::move(p)} {}
  [[nodiscard]] result<pid> spawn(kernel& k, birth&& with) const override {
    return spawn_actor<A>(k, std::move(with), props_.settings(), {.failures = decided_by::supervisor});
  }

 private:
  props<A> props_;
};
}  // namespace coppice::detail

namespace coppice::actor {

/// An actor as a child of a supervisor: `child<any_actor>(props<counter>())`. Its start is complete when an instance
/// has handled `started`. Without a guardian, a failure ends the actor, and the supervisor decides.
struct any_actor {
  template <class A>
  [[nodiscard]] static coppice::child_spec child_spec(props<A> how) {
    coppice::child_spec spec = detail::derived_spec<A>(std::make_shared<detail::actor_recipe<A>>(std::move(how)));
    spec.type = child_type::actor;
    return spec;
  }
};

}  // namespace coppice::actor
