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
  vacant,   // no envelope has it: what a slot without a process accepts
  message,  // for the body, the hot one
  order,    // for an actor, ahead of the mail that waits
  reply,    // the answer to a call
  notice,   // for the library's own code in that process: a child has started or ended, a job is done
  start,    // the first of every process
  exit,     // somebody ended, or wants us to
  link,
  unlink,
  unlink_ack,
  link_lost,  // with the connection
  monitor,
  demonitor,
  down,       // somebody we monitor has ended
  timeout,    // a timer of our own
  wait_over,  // the time of a wait may be over
  wake,       // a yield, or blocking work that is done
  done,       // dealt with ahead of its turn
  seen,       // a message, or done: up to here the queue was looked through for orders
};

/// How a message ends that is not received.
struct loss {
  enum class kind : std::uint8_t {
    dropped,      // its receiver, or the runtime, had no use for it
    ended,        // its receiver has ended
    unreachable,  // it had no receiver: noproc or noconnection
    vanished,     // on the way to another node, and nobody knows: the caller hears when the connection is given up
  };
  kind what = kind::dropped;
  const exit_reason* why = nullptr;  // of the end, or what it can't be reached for
  pid to{};                          // unreachable: who
};

/// Where a message came from, apart from what it says.
struct mail_origin {
  pid sender{};                         // nobody: it does not say
  std::uint64_t call = 0;               // not 0: the sender waits for an answer under this number
  bool called = false;                  // it did, at first
  const message_type* reply = nullptr;  // what it waits for
  void (*fail)(kernel&, pid, std::uint64_t, error) = nullptr;
  std::uint64_t timer = 0;  // not 0: a timer of the receiver's own
};

/// Everything about a kind of message, one object per type: its address is the type's identity.
struct message_type {
  std::string_view name;
  std::uint32_t size;  // of the whole envelope
  /// Destroys the payload. A request answers its caller first.
  void (*drop)(kernel&, envelope&, loss how);
  /// Hands the payload to the body of a process; null for messages that are received by type.
  void (*deliver)(body&, turn&, envelope&) = nullptr;
  /// The only kind of body that `deliver` can be called with; null: none.
  const body_type* for_body = nullptr;
  bool is_request = false;
  /// Of requests: answers the caller and leaves the envelope as it is.
  void (*fail)(kernel&, envelope&, error) = nullptr;
  /// Moves the payload into an envelope of its own and leaves this one empty; null where nobody needs it.
  envelope* (*relocate)(envelope&) = nullptr;
  /// Starts the handler of an object whose handlers wait; see serving.hpp.
  void (*run)(void* object, self& me, serving& s, envelope& e) = nullptr;
  /// The only class of object that `run` can be called with, by its mark; null: none.
  const char* for_server = nullptr;
  /// The type that the same message has when it does not carry its handler; null: this one.
  const message_type* untyped = nullptr;
  /// Finds the message itself, and what is known of its origin. Null where nobody needs it.
  void* (*open)(envelope&, mail_origin&) = nullptr;
  /// When it was opened: with a call in the origin, that is given back to the request, which then answers for it;
  /// without one, somebody else does. A timer's message is one like any other from then on.
  void (*close)(envelope&, mail_origin&) = nullptr;
  /// The type of what `open` finds, as `plain`; null: this one.
  const message_type* content = nullptr;
  /// For mailboxes that care; null: the usual one.
  int (*priority)(const envelope&) = nullptr;
  /// For routers; null: it has none.
  std::uint64_t (*key)(const envelope&) = nullptr;
  /// Null: it can't be copied.
  envelope* (*copy)(const envelope&) = nullptr;
  /// Full mailboxes take it all the same.
  bool never_dropped = false;
  /// A question about the process, not for it: it does not wait with the mail.
  bool passes_gates = false;
  /// It does not interrupt a receive timeout.
  bool unnoticed = false;
};

struct envelope {
  std::atomic<envelope*> next{nullptr};
  const message_type* type;
  std::uint64_t tag = 0;  // serial of the receiver << 32 | signal: "a message for whom lives here now" is one compare

  explicit envelope(const message_type* t) noexcept : type{t} {}
  static constexpr std::uint64_t tag_of(std::uint32_t serial, signal s) noexcept {
    return std::uint64_t{serial} << 32U | static_cast<std::uint16_t>(s);
  }
  [[nodiscard]] signal what() const noexcept { return static_cast<signal>(static_cast<std::uint16_t>(tag)); }
  [[nodiscard]] std::uint32_t serial() const noexcept { return static_cast<std::uint32_t>(tag >> 32U); }
  void become(signal s) noexcept { tag = tag_of(serial(), s); }
};

/// Whether it is a message of that type, with its handler or without.
[[nodiscard]] inline bool is_a(const envelope& e, const message_type& type) noexcept {
  return e.type == &type || e.type->untyped == &type;
}

/// Frees the memory of an envelope whose payload is gone.
inline void release(envelope* e) noexcept {
  const std::size_t size = e->type->size;
  e->~envelope();
  release(static_cast<void*>(e), size);
}
/// Drops the payload and frees the envelope.
inline void discard(kernel& k, envelope* e, loss how = {}) {
  e->type->drop(k, *e, how);
  release(e);
}

template <class M>
struct letter : envelope {
  M body;
  template <class... Args>
  explicit letter(const message_type* t, Args&&... args) : envelope{t}, body(std::forward<Args>(args)...) {}
  // Aggregates have no constructor for the form above.
  template <class... Args>
    requires(!std::is_constructible_v<M, Args...>)
  explicit letter(const message_type* t, Args&&... args) : envelope{t}, body{std::forward<Args>(args)...} {}
};

/// Throws `std::bad_alloc`, and what the message's constructor throws.
template <class M, class... Args>
[[nodiscard]] letter<M>* make_letter(const message_type& type, Args&&... args) {
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

/// A message that a user sends. What only the runtime can know is taken out of it: see `exited`.
template <class M, class... Args>
[[nodiscard]] letter<M>* make_mail(const message_type& type, Args&&... args) {
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
  moved->tag = e.tag;
  std::destroy_at(std::addressof(body));
  return moved;
}

template <class M>
void* open_body(envelope& e, mail_origin&) {
  return std::addressof(static_cast<letter<M>&>(e).body);
}

template <class M>
const M& itself(const M& m) {
  return m;  // NOLINT(bugprone-return-const-ref-from-parameter): of a letter, which stays
}

/// A constant, not a member of that name that each message has its own of: g++ 12 must not even look at that.
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
concept passes_gates = requires {
  requires !std::is_member_pointer_v<decltype(&M::passes_gates)>;
  requires M::passes_gates;
};
template <class M>
concept keeps_receive_timeout = requires {
  requires !std::is_member_pointer_v<decltype(&M::keeps_receive_timeout)>;
  requires M::keeps_receive_timeout;
};

/// What a message may say of itself, as a constant or a function: `priority`, for mailboxes that care, and
/// `routing_key`, for routers. `in` gives the message within the payload of a letter.
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
  static consteval void add_to(message_type& type) {
    if constexpr (requires(const M& m) { m.priority(); } || has_constant_priority<M>) type.priority = &priority;
    if constexpr (requires(const M& m) { m.routing_key(); }) type.key = &key;
    // Not whatever says it can be copied: a vector of what can't be says so, too.
    if constexpr (std::is_trivially_copyable_v<M> || can_be_broadcast<M>) type.copy = &copy;
    type.passes_gates = passes_gates<M>;
    type.unnoticed = keeps_receive_timeout<M>;
  }
};

template <class M>
consteval message_type plain_type() {
  message_type type{.name = type_name<M>(), .size = sizeof(letter<M>), .drop = &drop_body<M>};
  type.relocate = &relocate_body<M>;
  type.open = &open_body<M>;
  traits_of<M, M, itself<M>>::add_to(type);
  return type;
}
/// The type of an untyped message `M`, as `receive<M>` looks for it.
template <class M>
inline constexpr message_type plain = plain_type<M>();

/// Takes the payload out of an envelope and leaves it empty, also when moving it throws.
template <class M>
[[nodiscard]] M take_body(envelope& e) {
  struct emptying {
    M& body;
    ~emptying() { std::destroy_at(std::addressof(body)); }
  } from{static_cast<letter<M>&>(e).body};
  return M(std::move(from.body));
}

}  // namespace coppice::detail
