#pragma once
/// The things a process can receive, and how each is taken out of its envelope: messages by type, requests, anything.
#include <coppice/runtime/detail/coroutine.hpp>

namespace coppice {

/// Any message at all, in a receive: `co_await me.receive<hello, any_message>()` also takes messages that are not a
/// `hello`.
class any_message {
 public:
  any_message(detail::kernel& k, detail::envelope* e) noexcept : kernel_{&k}, envelope_{e} {}
  any_message(any_message&& other) noexcept
      : kernel_{other.kernel_}, envelope_{std::exchange(other.envelope_, nullptr)} {}
  any_message& operator=(any_message&& other) noexcept {
    std::swap(kernel_, other.kernel_);
    std::swap(envelope_, other.envelope_);
    return *this;
  }
  ~any_message() {
    if (envelope_ != nullptr) detail::discard(*kernel_, envelope_);
  }
  /// The C++ type of the message, for reports.
  [[nodiscard]] std::string_view type() const noexcept { return envelope_->type->name; }
  /// The message if it is an `M`, otherwise null.
  template <class M>
  [[nodiscard]] M* get_if() noexcept {
    if (envelope_->type == &detail::plain<M>) return &static_cast<detail::letter<M>*>(envelope_)->body;
    return envelope_->type->mail.content == &detail::plain<M> ? static_cast<M*>(opened()) : nullptr;
  }

  /// For the library: the envelope. `release` hands it over to the caller.
  [[nodiscard]] const detail::envelope& content() const noexcept { return *envelope_; }
  [[nodiscard]] detail::envelope& content() noexcept { return *envelope_; }
  /// The message inside the envelope; null if the envelope has none.
  [[nodiscard]] void* opened() const noexcept {
    const detail::message_type& type = *envelope_->type;
    if (type.mail.open == nullptr) return nullptr;
    detail::mail_origin origin;
    void* message = type.mail.open(*envelope_, origin);
    return message;
  }
  [[nodiscard]] bool empty() const noexcept { return envelope_ == nullptr; }
  [[nodiscard]] detail::envelope* release() noexcept { return std::exchange(envelope_, nullptr); }

 private:
  detail::kernel* kernel_;
  detail::envelope* envelope_;
};

namespace detail {

/// How a receive recognises the envelope of a `T` and takes the `T` out of it.
template <class T>
struct received {
  [[nodiscard]] static bool matches(const envelope& e) noexcept { return is_a(e, plain<T>); }
  [[nodiscard]] static T take(coroutine&, envelope& e) { return take_body<T>(e); }
};
template <>
struct received<any_message> {
  [[nodiscard]] static bool matches(const envelope&) noexcept { return true; }
  [[nodiscard]] static any_message take(coroutine& me, envelope& e) {
    return any_message{me.host(), e.type->relocate(e)};
  }
};

}  // namespace detail
}  // namespace coppice
