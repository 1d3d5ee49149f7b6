#pragma once
/// Mail that an actor cannot handle now, in its order.
#include <coppice/actor/detail/life_status.hpp>

namespace coppice::detail {

/// Wakes the actor to handle the mail that was put aside.
struct replay_mail {};

/// Envelopes are owned by this list until they are taken. Thread safety: the owner of the process only.
class aside_mail {
 public:
  explicit aside_mail(life_status& owner) noexcept : owner_{&owner} {}

  void add(envelope* e) {
    ensure(e != nullptr && e != last_, "no envelope was put aside, or the same one twice");
    if (last_ != nullptr)
      last_->next.store(e, std::memory_order_relaxed);
    else
      first_ = e;
    last_ = e;
    if (size_++ == 0) note_change();
  }
  void add_first(envelope* e) {
    ensure(e != nullptr && e != first_, "no envelope was put aside, or the same one twice");
    e->next.store(first_, std::memory_order_relaxed);
    if (first_ == nullptr) last_ = e;
    first_ = e;
    if (size_++ == 0) note_change();
  }
  /// The oldest; null: there is none.
  [[nodiscard]] envelope* take() noexcept {
    envelope* e = first_;
    if (e == nullptr) return nullptr;
    first_ = e == last_ ? nullptr : e->next.load(std::memory_order_relaxed);
    if (first_ == nullptr) last_ = nullptr;
    if (--size_ == 0) note_change();
    return e;
  }
  template <class F>
  void for_each(const F& f) const {
    const envelope* e = first_;
    for (std::uint32_t i = 0; i < size_; ++i, e = e->next.load(std::memory_order_relaxed)) f(*e);
  }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  bool replaying = false;         // a message from here is being handled
  bool replay_scheduled = false;  // a `replay_mail` is on its way

 private:
  void note_change() noexcept { owner_->set_slow_path(life_status::slow_path::mail_aside, size_ != 0); }
  life_status* owner_;
  envelope* first_ = nullptr;
  envelope* last_ = nullptr;
  std::uint32_t size_ = 0;
};

}  // namespace coppice::detail
