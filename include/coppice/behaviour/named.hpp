#pragma once
/// A server that is found by its name at each use, so that a restart does not make it stale.
///
///     const named<writer> to{"writer"};
///     to.cast<writer::flush>();
///     const result<int> rows = co_await to.within(1s).call<writer::put>(key, value);
#include <coppice/runtime/runtime.hpp>

namespace coppice {

/// The type is not checked, as with a `ref` that is made from a pid.
/// Thread safety: a value; `cast` and `call` are for processes, plain threads use `find`.
template <class T>
class named {
 public:
  explicit named(std::string name) : name_{std::move(name)} {}
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// The process that has the name now, or nobody.
  [[nodiscard]] ref<T> find(const self& me) const { return ref<T>{me.where(name_)}; }
  /// From a plain thread: `rt.call(to.find(rt).call<put>(key, value))`.
  [[nodiscard]] ref<T> find(const runtime& rt) const { return ref<T>{rt.where(name_)}; }

  /// Sends an `M` made from the arguments to the process that has the name. A dead letter if there is none.
  template <class M, class... Args>
  void cast(Args&&... args) const {
    if constexpr (detail::must_handle_cast<T, M>()) find_here().template cast<M>(std::forward<Args>(args)...);
  }
  /// Calls the process that has the name at this moment. Errors: those of the call; `noproc` if no process has the
  /// name. The text of `noproc`, `exited` and `timeout` contains the name.
  template <class M, class... Args>
  [[nodiscard]] task<result<reply_of<M>>> call(Args&&... args) const {
    if constexpr (detail::must_handle_call<T, M>())
      return ask<M>(name_, find_here().template call<M>(std::forward<Args>(args)...).within(timeout_));
  }
  /// The same name, with another time limit for calls. Default: five seconds.
  [[nodiscard]] named within(std::chrono::nanoseconds timeout) const {
    named other{name_};
    other.timeout_ = timeout;
    return other;
  }

 private:
  [[nodiscard]] ref<T> find_here() const { return ref<T>{detail::kernel_here().where(name_)}; }
  template <class M>
  static task<result<reply_of<M>>> ask(std::string name, pending_call<M> call) {
    if (!call.to()) co_return fail(errc::noproc, "no process has the name '" + name + "'");
    result<reply_of<M>> answer = co_await std::move(call);
    if (!answer && is_about_the_process(answer.error().code())) {
      error why{answer.error().code(), "the call of '" + name + "' failed", answer.error()};
      co_return std::unexpected{std::move(why)};
    }
    co_return answer;
  }
  [[nodiscard]] static bool is_about_the_process(error_code code) {
    return code == errc::noproc || code == errc::exited || code == errc::timeout;
  }

  std::string name_;
  std::chrono::nanoseconds timeout_ = default_call_timeout;
};

}  // namespace coppice
