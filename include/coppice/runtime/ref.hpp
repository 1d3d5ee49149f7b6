#pragma once
/// `ref<T>`: the address of a process whose messages are handled by an object of class `T`.
///
/// This header is enough to keep a `ref` and to pass it on. Sending through it also needs object.hpp, which runtime.hpp
/// includes.
#include <coppice/runtime/detail/handlers.hpp>
#include <coppice/runtime/pid.hpp>

namespace coppice {

/// The address of an object process, with its type. A value, as a pid is.
template <class T>
class ref {
 public:
  constexpr ref() noexcept = default;
  /// The type is not checked. If the process is not a `T`, a message sent through this `ref` becomes a dead letter, or
  /// stays in the mailbox if the process is a plain coroutine: then a call ends with its timeout. Exception: if `T` has
  /// handlers that are coroutines, a server with the message in its protocol, or a `receive` of it, takes the message.
  constexpr explicit ref(pid who) noexcept : pid_{who} {}
  [[nodiscard]] constexpr pid id() const noexcept { return pid_; }
  constexpr explicit operator bool() const noexcept { return static_cast<bool>(pid_); }
  friend constexpr auto operator<=>(const ref&, const ref&) noexcept = default;

  /// Sends an `M` made from the arguments. From inside a process; a plain thread uses `runtime::cast`. Never waits,
  /// and never fails because of its receiver.
  template <class M, class... Args>
  void cast(Args&&... args) const;
  /// A call to be awaited: `const auto n = co_await counters.call<counter::bump>(3);`. A plain thread passes it to its
  /// runtime: `rt.call(counters.call<counter::bump>(3))`.
  template <class M, class... Args>
  [[nodiscard]] pending_call<M> call(Args&&... args) const;

 private:
  pid pid_;
};

}  // namespace coppice
