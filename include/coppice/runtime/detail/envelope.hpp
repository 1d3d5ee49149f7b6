#pragma once
/// What travels between processes: one queue per process holds messages and all other signals, in the order of arrival.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>

#include <coppice/base/error.hpp>
#include <coppice/base/type_name.hpp>
#include <coppice/runtime/detail/pool.hpp>
#include <coppice/runtime/exit_reason.hpp>
#include <coppice/runtime/pid.hpp>

namespace coppice {
class self;
template <class T>
class task;
}  // namespace coppice

namespace coppice::detail {

struct serving;
struct message_type;
class kernel;
struct slot;
struct turn;
struct body;
struct body_type;
struct envelope;

enum class signal : std::uint16_t {
  vacant,   // never sent: the signal in the tag of a slot without a process
  message,  // for the body; the most frequent signal
  fast,     // for a body with a fast lane: delivered before mail
  reply,    // the answer to a call
  notice,   // for library code in that process: a child has started or ended, a job or a freeze is done
  start,    // the first of every process
  exit,     // a process has ended, or wants this one to end
  link,
  unlink,
  unlink_ack,
  link_lost,  // the connection that carried a link is lost
  monitor,
  demonitor,
  down,       // a monitored process has ended
  timeout,    // a timer that the process started has fired
  wait_over,  // the timeout of a wait may have passed
  wake,       // ends a yield, brings the result of blocking work, or wakes an actor for work outside of its queue
  done,       // an empty envelope; its signal, if it had one, was handled before its turn
  seen,       // was a message or `done`; marks how far the fast lane has searched
  mail,       // a token in the place of a message that waits in the mailbox policy of a process that is not an actor
};

/// Why a message is dropped instead of received.
struct loss {
  enum class kind : std::uint8_t {
    dropped,      // its receiver, or the runtime, had no use for it
    ended,        // its receiver has ended
    unreachable,  // it had no receiver: noproc or noconnection
    vanished,     // the drop answers nobody: the caller was answered before, or, if the message was lost on the way to
                  // another node, gets its error when the connection is lost
  };
  kind what = kind::dropped;
  const exit_reason* why = nullptr;  // of the end, or why the receiver can't be reached
  pid to{};                          // the receiver that can't be reached
};

/// The sender of a message, and the call or timer that it belongs to.
struct mail_origin {
  pid sender{};                         // nobody: not known
  std::uint64_t call = 0;               // not 0: the sender waits for an answer under this number
  bool called = false;                  // the message is a call, even if the call was answered since
  const message_type* reply = nullptr;  // the type of the answer
  void (*fail)(kernel&, pid, std::uint64_t, error) = nullptr;
  std::uint64_t timer = 0;  // not 0: the message comes from this timer of the receiver
};

/// How an object receives a message that carries its handler.
struct object_delivery {
  void (*deliver)(body&, turn&, envelope&) = nullptr;  ///< null: the message is received by type
  const body_type* for_body = nullptr;                 ///< the only kind of body that `deliver` can be called with
};
/// How a server whose handlers may wait receives a message; see serving.hpp.
struct server_delivery {
  void (*run)(void* object, self& me, serving& s, envelope& e) = nullptr;
  const char* for_server = nullptr;  ///< the mark of the only class that `run` can be called with; null: none
};
/// The message inside a payload, for code that receives any type: actors, and handlers of `any_message`.
struct mail_content {
  /// Returns the message and fills in its origin. Null: the payload holds no message.
  void* (*open)(envelope&, mail_origin&) = nullptr;
  /// Undoes `open`. If the origin still has the call, the request takes it back and answers it when it is dropped;
  /// otherwise the request no longer answers. The message of a timer becomes a plain message. Null: nothing to undo.
  void (*close)(envelope&, mail_origin&) = nullptr;
  /// The `plain` type of the message inside; null: the payload is the message.
  const message_type* content = nullptr;
};
/// For mailbox policies.
struct mailbox_traits {
  int (*priority)(const envelope&) = nullptr;  ///< null: the usual priority
  bool never_dropped = false;                  ///< a full mailbox accepts it too
  bool bypasses_policy = false;                ///< it goes straight into the queue, also if the mailbox is full
  bool keeps_receive_timeout = false;          ///< it does not restart the receive timeout
};
/// For routers.
struct routing_traits {
  std::uint64_t (*key)(const envelope&) = nullptr;  ///< null: the message has no key
  envelope* (*copy)(const envelope&) = nullptr;     ///< null: it can't be copied
};

/// Everything about a kind of message, one object per type: its address is the type's identity.
struct message_type {
  std::string_view name;
  std::uint32_t size;  ///< of the whole envelope
  /// Destroys the payload. A request answers its caller first.
  void (*drop)(kernel&, envelope&, loss how);
  /// Moves the payload into a new envelope and leaves this one empty; null: it can't be moved.
  envelope* (*relocate)(envelope&) = nullptr;
  /// Of requests: answers the caller and leaves the envelope as it is. Null: it is not a request.
  void (*fail)(kernel&, envelope&, error) = nullptr;
  /// The type that the same message has when it does not carry its handler; null: this one.
  const message_type* untyped = nullptr;
  object_delivery object{};
  server_delivery server{};
  mail_content mail{};
  mailbox_traits mailbox{};
  routing_traits routing{};

  [[nodiscard]] bool is_request() const noexcept { return fail != nullptr; }
};

struct envelope {
  std::atomic<envelope*> next{nullptr};
  const message_type* type;
  std::uint64_t tag = 0;  // serial of the receiver << 32 | signal: one compare tells whether it is a message for the
                          // process in the slot

  /// A mark in the tag, among the bits that `slot::accepts` ignores: see trace_ids.hpp.
  static constexpr std::uint64_t has_trace = 1U << 16U;

  explicit envelope(const message_type* t) noexcept : type{t} {}
  static constexpr std::uint64_t tag_of(std::uint32_t serial, signal s) noexcept {
    return std::uint64_t{serial} << 32U | static_cast<std::uint16_t>(s);
  }
  [[nodiscard]] signal what() const noexcept { return static_cast<signal>(static_cast<std::uint16_t>(tag)); }
  [[nodiscard]] std::uint32_t serial() const noexcept { return static_cast<std::uint32_t>(tag >> 32U); }
  void become(signal s) noexcept { tag = tag_of(serial(), s) | (tag & has_trace); }
};

/// Whether the envelope is of that type. It may carry its handler or not.
[[nodiscard]] inline bool is_a(const envelope& e, const message_type& type) noexcept {
  return e.type == &type || e.type->untyped == &type;
}

/// Frees the memory of an envelope whose payload is gone.
inline void release(envelope* e) noexcept {
  const std::size_t size = e->type->size;
  e->~envelope();
  release(static_cast<void*>(e), size);
}
/// Forgets the trace of a message that nobody receives.
void forget_trace(kernel& k, envelope& e) noexcept;
/// Drops the payload and frees the envelope.
inline void discard(kernel& k, envelope* e, loss how = {}) {
  if ((e->tag & envelope::has_trace) != 0) [[unlikely]]
    forget_trace(k, *e);
  e->type->drop(k, *e, how);
  release(e);
}

template <class M>
struct letter : envelope {
  M body;
  template <class... Args>
  explicit letter(const message_type* t, Args&&... args) : envelope{t}, body(std::forward<Args>(args)...) {}
  // For aggregates, which need braces.
  template <class... Args>
    requires(!std::is_constructible_v<M, Args...>)
  explicit letter(const message_type* t, Args&&... args) : envelope{t}, body{std::forward<Args>(args)...} {}
};

/// Throws `std::bad_alloc`, and what the message's constructor throws.
template <class M, class... Args>
[[nodiscard, gnu::always_inline]] inline letter<M>* make_letter(const message_type& type, Args&&... args) {
  static_assert(alignof(M) <= alignof(std::max_align_t), "over-aligned messages are not supported");
  void* raw = allocate(sizeof(letter<M>));
  if constexpr (std::is_nothrow_constructible_v<letter<M>, const message_type*, Args...>) {
    return ::new (raw) letter<M>(&type, std::forward<Args>(args)...);
  } else {
    try {
      return ::new (raw) letter<M>(&type, std::forward<Args>(args)...);
    } catch (...) {
      release(raw, sizeof(letter<M>));
      throw;
    }
  }
}

/// Makes a message that a user sends. Marks that only the runtime may set are cleared: see `exited`.
template <class M, class... Args>
[[nodiscard]] letter<M>* make_mail(const message_type& type, Args&&... args) {
  static_assert(!std::is_same_v<M, const char*>, "send a std::string: a pointer to its characters may dangle");
  letter<M>* e = make_letter<M>(type, std::forward<Args>(args)...);
  if constexpr (requires { not_from_the_runtime(e->body); }) not_from_the_runtime(e->body);
  return e;
}

template <class M>
void drop_body(kernel&, envelope& e, loss) {
  std::destroy_at(std::addressof(static_cast<letter<M>&>(e).body));
}

template <class M>
envelope* relocate_body(envelope& e) {
  auto& body = static_cast<letter<M>&>(e).body;
  envelope* moved = make_letter<M>(*e.type, std::move(body));
  moved->tag = e.tag & ~envelope::has_trace;  // the trace stays with `e`
  std::destroy_at(std::addressof(body));
  return moved;
}

template <class M>
void* open_body(envelope& e, mail_origin&) {
  return std::addressof(static_cast<letter<M>&>(e).body);
}

template <class M>
const M& itself(const M& m) {
  return m;  // NOLINT(bugprone-return-const-ref-from-parameter): within a letter, which outlives the call
}

/// A static constant `priority`. A non-static member is excluded first: g++ 12 must not evaluate it below.
template <class M>
concept has_constant_priority = requires {
  requires !std::is_member_pointer_v<decltype(&M::priority)>;
  typename std::integral_constant<int, M::priority>;
};

template <class M>
concept can_be_broadcast = requires {
  requires !std::is_member_pointer_v<decltype(&M::can_be_broadcast)>;
  requires M::can_be_broadcast;
};
template <class M>
concept bypasses_policy = requires {
  requires !std::is_member_pointer_v<decltype(&M::bypasses_policy)>;
  requires M::bypasses_policy;
};
template <class M>
concept keeps_receive_timeout = requires {
  requires !std::is_member_pointer_v<decltype(&M::keeps_receive_timeout)>;
  requires M::keeps_receive_timeout;
};

/// Optional members of a message: `priority`, a constant or a function, for mailboxes by priority, and the function
/// `routing_key`, for routers. `in` returns the message within the payload of a letter.
template <class M, class Payload, const M& (*in)(const Payload&)>
struct traits_of {
  static const M& message(const envelope& e) { return in(static_cast<const letter<Payload>&>(e).body); }
  static int priority(const envelope& e) {
    if constexpr (requires(const M& m) { m.priority(); })
      return message(e).priority();
    else
      return M::priority;
  }
  static std::uint64_t key(const envelope& e) {
    return std::hash<std::decay_t<decltype(message(e).routing_key())>>{}(message(e).routing_key());
  }
  static envelope* copy(const envelope& e) {
    return make_letter<Payload>(*e.type, static_cast<const letter<Payload>&>(e).body);
  }
  static consteval mailbox_traits mailbox() {
    mailbox_traits traits{.bypasses_policy = bypasses_policy<M>, .keeps_receive_timeout = keeps_receive_timeout<M>};
    if constexpr (requires(const M& m) { m.priority(); } || has_constant_priority<M>) traits.priority = &priority;
    return traits;
  }
  static consteval void add_to(message_type& type) {
    type.mailbox = mailbox();
    if constexpr (requires(const M& m) { m.routing_key(); }) type.routing.key = &key;
    // std::is_copy_constructible is not enough: it is also true for a vector of elements that can't be copied.
    if constexpr (std::is_trivially_copyable_v<M> || can_be_broadcast<M>) type.routing.copy = &copy;
  }
};

template <class M>
consteval message_type plain_type() {
  message_type type{.name = type_name<M>(), .size = sizeof(letter<M>), .drop = &drop_body<M>};
  type.relocate = &relocate_body<M>;
  type.mail.open = &open_body<M>;
  traits_of<M, M, itself<M>>::add_to(type);
  return type;
}
/// The type of a message `M` that does not carry its handler: `receive<M>` looks for it.
template <class M>
inline constexpr message_type plain = plain_type<M>();

/// Destroys the payload of an envelope at the end of its scope.
template <class M>
class payload_guard {
 public:
  explicit payload_guard(envelope& e) noexcept : body_{static_cast<letter<M>&>(e).body} {}
  ~payload_guard() { std::destroy_at(std::addressof(body_)); }
  payload_guard(const payload_guard&) = delete;
  payload_guard& operator=(const payload_guard&) = delete;
  [[nodiscard]] M& get() const noexcept { return body_; }

 private:
  M& body_;
};

/// Takes the payload out of an envelope and leaves it empty, also when moving it throws.
template <class M>
[[nodiscard]] M take_body(envelope& e) {
  const payload_guard<M> from{e};
  return M(std::move(from.get()));
}

}  // namespace coppice::detail
