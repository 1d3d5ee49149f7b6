#pragma once
/// An actor of one class: the memory of its instance, and the way from a message to its handler.
#include <coppice/actor/context.hpp>

namespace coppice::detail {

template <class A, class M>
concept handles_message = handles_with_or_without<A, context, M>;
template <class M, class... Ms>
[[nodiscard]] consteval bool is_listed(protocol<Ms...>*) {
  return (std::is_same_v<M, Ms> || ...);
}
/// Messages that may be sent through an `actor_ref<A>`: those that also reach a handler when they are sent to the pid.
template <class A, class M>
concept receives = (handles_message<A, M> && is_listed<M>(static_cast<typename A::protocol*>(nullptr))) ||
                   handles_message<A, any_message>;
template <class A, class M>
consteval void must_receive() {
  static_assert(receives<A, M>,
                "the actor's class has no handler for this message, or does not list it in its protocol");
}

template <class A>
struct actor_body : actor_core {
  union {
    A object;
  };
  explicit actor_body(std::shared_ptr<const actor_settings> s, actor_birth how);
  ~actor_body() {}  // NOLINT(modernize-use-equals-default): `unmake` destroys the object
  actor_body(const actor_body&) = delete;
  actor_body& operator=(const actor_body&) = delete;
};

/// Calls the handler. Its return value answers the call.
template <class A, class M>
void call_handler(A& object, context& me, M& message) {
  const auto run = [&]() -> decltype(auto) {
    return call_handle<preferred::with_me>(object, [&]() -> context& { return me; }, std::move(message));
  };
  using gives = decltype(run());
  static_assert(!is_task<gives>,
                "handlers of actors must not be coroutines: use context::reenter_after to wait for something");
  if constexpr (std::is_void_v<gives>) {
    run();
    if constexpr (callable_message<M>)
      if constexpr (std::is_void_v<reply_of<M>>)
        if (!me.has_failed()) me.answer_if_asked<void>(result<void>{});
  } else if constexpr (callable_message<M>) {
    static_assert(std::is_convertible_v<gives, reply_of<M>> || std::is_same_v<std::decay_t<gives>, result<reply_of<M>>>,
                  "the handler of a call must return its reply, or a result of it");
    auto value = as_answer<reply_of<M>>(run());
    if (!me.has_failed()) me.answer_if_asked<reply_of<M>>(std::move(value));
  } else {
    result<std::decay_t<gives>> value{run()};
    if (!me.has_failed()) me.answer_if_asked<std::decay_t<gives>>(std::move(value));
  }
}

/// Whether the handler needs no context: it has no such parameter and returns no answer.
template <class A, class M>
inline constexpr bool gives_nothing = false;
template <class A, class M>
  requires(handles<A, M> && !handles<A, M, context&> && !callable_message<M>)
// NOLINTNEXTLINE(readability-static-accessed-through-instance): the handler may be static
inline constexpr bool gives_nothing<A, M> = std::is_void_v<decltype(std::declval<A&>().handle(std::declval<M>()))>;

/// Delivers mail that carries its handler. The kernel calls it directly while the body's type is
/// `actor_class::direct`.
template <class A, class M, class Payload, void* (*open)(envelope&, mail_origin&)>
void deliver_to_actor(body& b, turn& t, envelope& e) {
  auto& mine = static_cast<actor_body<A>&>(b);
  mail_origin origin;
  struct cleaning {
    Payload& payload;
    ~cleaning() { std::destroy_at(&payload); }
  } content{static_cast<letter<Payload>&>(e).body};
  M& message = *static_cast<M*>(open(e, origin));
  call_guarded(mine, t, origin, [&] {
    if constexpr (gives_nothing<A, M>) {
      mine.object.handle(std::move(message));
    } else {
      context me{mine, t, origin, plain<M>};
      call_handler(mine.object, me, message);
    }
  });
  if constexpr (callable_message<M>) {
    if (origin.call != 0) [[unlikely]]
      fail_call(*t.k, origin, no_answer(mine));
  }
}

template <class A>
void make_instance(actor_core& core, context& me) {
  auto& mine = static_cast<actor_body<A>&>(core);
  core.settings->make(std::addressof(mine.object), me);
}
template <class A>
void unmake_instance(actor_core& core) noexcept {
  std::destroy_at(std::addressof(static_cast<actor_body<A>&>(core).object));
}
template <class A>
void free_actor(actor_core& core) noexcept {
  auto& mine = static_cast<actor_body<A>&>(core);
  std::destroy_at(&mine);
  release(&mine, sizeof(mine));
}

template <class A, class M>
bool try_handler([[maybe_unused]] A& object, [[maybe_unused]] context& me, [[maybe_unused]] const message_type& type,
                 [[maybe_unused]] void* message) {
  if constexpr (handles_message<A, M>) {
    if (&type == &plain<M>) return call_handler(object, me, *static_cast<M*>(message)), true;
  }
  return false;
}
template <class A, class M>
consteval void must_handle() {
  static_assert(handles_message<A, M>,
                "the protocol lists a message that the class does not handle: it needs a public handle(M), or "
                "handle(M, context&), that takes the message by value or as const&");
}
template <class A, class E>
concept nearly_handles = requires(A& a, E& m, context& me) { a.handle(m, me); } || requires(A& a, E& m) {
  a.handle(m);
} || requires(A& a, E& m, self& me) { a.handle(m, me); } || requires(A& a, E& m, context& me) { a.handle(me, m); };
/// Handlers of lifecycle messages are optional, but one that exists must be callable.
template <class A, class E>
consteval void must_fit() {
  static_assert(handles_message<A, E> || !nearly_handles<A, E>,
                "a handler for a lifecycle message is never called: it must take the message by value or as const&, "
                "and may take a context& after it");
}
template <class A, class... Ms>
bool try_handlers([[maybe_unused]] A& object, [[maybe_unused]] context& me, [[maybe_unused]] const message_type& type,
                  [[maybe_unused]] void* message, protocol<Ms...>*) {
  (must_handle<A, Ms>(), ...);
  return (try_handler<A, Ms>(object, me, type, message) || ...);
}
template <class A>
bool dispatch_to(actor_core& core, context& me, const message_type& type, void* message) {
  static_assert(
      requires { typename A::protocol; },
      "an actor's class must list its messages: using protocol = coppice::protocol<...>;");
  A& object = static_cast<actor_body<A>&>(core).object;
  using life_messages = protocol<started, stopping, stopped, restarting, terminated, receive_timeout, exited>;
  return [&]<class... Es>(protocol<Es...>*) {
    (must_fit<A, Es>(), ...);
    return (try_handler<A, Es>(object, me, type, message) || ...);
  }(static_cast<life_messages*>(nullptr)) ||
         try_handlers<A>(object, me, type, message, static_cast<typename A::protocol*>(nullptr));
}
template <class A>
void hand_rest(actor_core& core, context& me, any_message&& m) {
  A& object = static_cast<actor_body<A>&>(core).object;
  call_handle<preferred::with_me>(object, [&]() -> context& { return me; }, std::move(m));
}
template <class A>
consteval auto handler_of_rest() -> void (*)(actor_core&, context&, any_message&&) {
  if constexpr (handles_message<A, any_message>)
    return &hand_rest<A>;
  else
    return nullptr;
}
template <class A>
concept decides_alone = requires(A& a, const child_failure& f) {
  { a.decide(f) } -> std::same_as<directive>;
};
template <class A>
concept decides_itself = decides_alone<A> || requires(A& a, const child_failure& f, context& me) {
  { a.decide(f, me) } -> std::same_as<directive>;
};
template <class A>
concept nearly_decides = requires(A& a, child_failure& f) { a.decide(f); } ||
                         requires(A& a, child_failure& f, context& me) { a.decide(f, me); } ||
                         requires(A& a, child_failure& f, context& me) { a.decide(me, f); };
template <class A>
directive ask_instance_of(actor_core& core, [[maybe_unused]] context& me, const child_failure& f) {
  A& object = static_cast<actor_body<A>&>(core).object;
  if constexpr (decides_alone<A>)
    return object.decide(f);
  else
    return object.decide(f, me);
}
template <class A>
consteval auto own_decider() -> directive (*)(actor_core&, context&, const child_failure&) {
  static_assert(decides_itself<A> || !nearly_decides<A>,
                "the class's decide() is never called: it must be directive decide(const child_failure&) or "
                "decide(const child_failure&, context&)");
  if constexpr (decides_itself<A>)
    return &ask_instance_of<A>;
  else
    return nullptr;
}

template <class A>
inline constexpr body_type actor_type{.offer = &actor_core::offer,
                                      .destroy = &actor_core::destroy,
                                      .held = &actor_core::held,
                                      .in_hand = &actor_core::in_hand,
                                      .puts_mail_aside = true,
                                      .name = type_name<A>(),
                                      .describe = &actor_core::describe,
                                      .tell_of_room = &actor_core::tell_of_room};
template <class A>
inline constexpr actor_class class_of{.direct = actor_type<A>,
                                      .indirect = actor_type<A>,
                                      .make = &make_instance<A>,
                                      .unmake = &unmake_instance<A>,
                                      .free = &free_actor<A>,
                                      .dispatch = &dispatch_to<A>,
                                      .rest = handler_of_rest<A>(),
                                      .decide = own_decider<A>()};

template <class A>
actor_body<A>::actor_body(std::shared_ptr<const actor_settings> s, actor_birth how)
    : actor_core{class_of<A>, std::move(s), how} {}

/// `untyped` with the handler of class `A` for the message, if `A` has one.
template <class A, class M, class Payload, void* (*open)(envelope&, mail_origin&)>
consteval message_type with_handler(const message_type& untyped) {
  message_type type = untyped;
  type.untyped = &untyped;
  if constexpr (handles_message<A, M>) {
    type.object.deliver = &deliver_to_actor<A, M, Payload, open>;
    type.object.for_body = &class_of<A>.direct;
  }
  type.mail.content = &plain<M>;
  return type;
}
template <class A, class M>
inline constexpr message_type mail_to = with_handler<A, M, M, &open_body<M>>(plain<M>);
template <class A, class M>
inline constexpr message_type sent_to = with_handler<A, M, sent<M>, &open_sent<M>>(plain<sent<M>>);
template <class A, class M>
inline constexpr message_type request_to = with_handler<A, M, request_body<M>, &open_request_body<M>>(plain_request<M>);

/// The first envelope of an actor: makes its body.
template <class A>
struct actor_start : start_letter {
  std::shared_ptr<const actor_settings> settings;
  actor_birth how;
  actor_start(birth&& b, std::shared_ptr<const actor_settings> s, actor_birth h)
      : start_letter{&type_of, std::move(b)}, settings{std::move(s)}, how{h} {}
  static void make(body&, turn& t, envelope& e) {
    auto& mine = static_cast<actor_start&>(e);
    t.p->set(slot::traps_exits | slot::has_fast_lane, true);
    void* raw = allocate(sizeof(actor_body<A>));
    t.born = ::new (raw) actor_body<A>(std::move(mine.settings), mine.how);
    t.p->note_body_bytes(sizeof(actor_body<A>));
  }
  static void drop(kernel&, envelope& e, loss) {
    auto& mine = static_cast<actor_start&>(e);
    std::destroy_at(&mine.settings);
    std::destroy_at(&mine.with);
  }
  static constexpr message_type type_of{.name = type_name<A>(),
                                        .size = sizeof(start_letter) + sizeof(settings) + sizeof(how) + 16,
                                        .drop = &drop,
                                        .object = {.deliver = &make}};
};

template <class A>
[[nodiscard]] result<pid> spawn_actor(kernel& k, birth&& with, std::shared_ptr<const actor_settings> s,
                                      actor_birth how) {
  with.policy = make_policy_of_actor(with.policy, s->mailbox);
  static_assert(alignof(A) <= alignof(std::max_align_t), "over-aligned actors are not supported");
  k.before_spawn();
  using letter_t = actor_start<A>;
  static_assert(sizeof(letter_t) <= letter_t::type_of.size);
  return k.start(::new (allocate(letter_t::type_of.size)) letter_t{std::move(with), std::move(s), how});
}

}  // namespace coppice::detail
