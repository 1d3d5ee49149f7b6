#pragma once
/// The forms in which a message reaches an actor: plain, with its sender, as a call, or from a timer.
#include <coppice/actor/fwd.hpp>
#include <coppice/runtime/call.hpp>

namespace coppice::actor {

/// A message with its sender, as `context::send_from` sends it. Plain processes may receive it:
/// `co_await me.receive<sent<hello>>()`.
template <class M>
struct sent {
  pid sender;
  M message;
};

}  // namespace coppice::actor

namespace coppice::detail {

template <class M>
struct timed {
  std::uint64_t timer;
  M message;
};

template <class M>
void* open_sent(envelope& e, mail_origin& origin) {
  auto& body = static_cast<letter<sent<M>>&>(e).body;
  origin.sender = body.sender;
  return std::addressof(body.message);
}
template <class M>
void* open_timed(envelope& e, mail_origin& origin) {
  auto& body = static_cast<letter<timed<M>>&>(e).body;
  origin.timer = body.timer;
  return std::addressof(body.message);
}
template <class M>
void close_timed(envelope& e, mail_origin&) {
  static_cast<letter<timed<M>>&>(e).body.timer = 0;  // from here on it is a message like any other
}
template <class M>
const M& in_sent(const sent<M>& s) {
  return s.message;
}
template <class M>
const M& in_timed(const timed<M>& s) {
  return s.message;
}

template <class Payload, class M, void* (*open)(envelope&, mail_origin&), const M& (*in)(const Payload&)>
consteval message_type form_of() {
  message_type type{.name = type_name<M>(), .size = sizeof(letter<Payload>), .drop = &drop_body<Payload>};
  type.relocate = &relocate_body<Payload>;
  type.mail.open = open;
  type.mail.content = &plain<M>;
  traits_of<M, Payload, in>::add_to(type);
  return type;
}
template <class M>
inline constexpr message_type plain<sent<M>> = form_of<sent<M>, M, &open_sent<M>, &in_sent<M>>();
/// A full mailbox accepts the message of a timer: dropping it would end a repeating timer.
template <class M>
consteval message_type timed_type() {
  message_type type = form_of<timed<M>, M, &open_timed<M>, &in_timed<M>>();
  type.mail.close = &close_timed<M>;
  type.mailbox.never_dropped = true;
  return type;
}
template <class M>
inline constexpr message_type plain<timed<M>> = timed_type<M>();

/// The type of the message itself, whatever its form.
[[nodiscard]] inline const message_type& content_of(const message_type& type) noexcept {
  return type.mail.content != nullptr ? *type.mail.content : type;
}

/// Answers the call of a message with an error, unless it was answered before.
inline void fail_call(kernel& k, mail_origin& origin, error why) {
  if (const std::uint64_t call = std::exchange(origin.call, 0)) origin.fail(k, origin.sender, call, std::move(why));
}

/// Owns a call that is answered later. If it is destroyed without an answer, the caller gets an error.
class held_call {
 public:
  held_call(kernel& k, mail_origin from) noexcept : origin{from}, kernel_{&k} {}
  held_call(held_call&& other) noexcept : origin{std::exchange(other.origin, {})}, kernel_{other.kernel_} {}
  held_call(const held_call&) = delete;
  held_call& operator=(const held_call&) = delete;
  held_call& operator=(held_call&&) = delete;
  ~held_call() { drop({errc::no_reply, "the request was dropped without an answer"}); }
  void drop(const error& why) noexcept { fail_call(*kernel_, origin, why); }

  mail_origin origin;

 private:
  kernel* kernel_;
};

/// Makes an envelope for the message in the form in which it was received.
template <class M>
[[nodiscard]] envelope* rebuild(mail_origin& origin, M&& message) {
  using content = std::decay_t<M>;
  if constexpr (callable_message<content>) {
    if (origin.call != 0 && origin.reply == &plain<reply_body<reply_of<content>>>) {
      auto* e = make_letter<request_body<content>>(plain_request<content>, std::forward<M>(message));
      e->body.caller = origin.sender;
      e->body.call = std::exchange(origin.call, 0);
      return e;
    }
  }
  // The caller of a call does not become the sender: its call was answered before, is answered by another process, or
  // waits for this handler because `message` has another type of reply. In no case does it expect a message.
  if (origin.sender && !origin.called)
    return make_letter<sent<content>>(plain<sent<content>>, origin.sender, std::forward<M>(message));
  return make_mail<content>(plain<content>, std::forward<M>(message));
}

}  // namespace coppice::detail
