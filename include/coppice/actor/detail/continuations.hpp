#pragma once
/// The continuations of `context::reenter_after`, stored with their future.
#include <coppice/actor/detail/mail.hpp>
#include <coppice/runtime/future.hpp>

namespace coppice::detail {

struct continuation {
  std::uint64_t generation;  // of the instance that made it
  held_call call;            // the call that the continuation may answer
  const message_type* message;
  std::function<void(context&)> run;
  trace_context trace{};  // of the handler that made it
};

struct continuations final : future_notes {
  std::vector<continuation> all;
};

[[nodiscard]] inline bool has_continuations(const future_base& f) noexcept {
  return f.notes != nullptr && !static_cast<const continuations&>(*f.notes).all.empty();
}
inline void add_continuation(future_base& f, continuation c) {
  if (!f.notes) f.notes = std::make_unique<continuations>();
  static_cast<continuations&>(*f.notes).all.push_back(std::move(c));
}
/// Removes them from the future.
[[nodiscard]] inline std::vector<continuation> take_continuations(future_base& f) {
  if (!f.notes) return {};
  return std::exchange(static_cast<continuations&>(*f.notes).all, {});
}

}  // namespace coppice::detail
