#pragma once
#include <utility>

namespace coppice::detail {

/// A list of objects that have the members `next` and `prev`.
template <class T>
struct chain {
  T* first = nullptr;
  void push(T& one) noexcept {
    one.prev = nullptr;
    one.next = std::exchange(first, &one);
    if (one.next != nullptr) one.next->prev = &one;
  }
  void remove(T& one) noexcept {
    (one.prev == nullptr ? first : one.prev->next) = one.next;
    if (one.next != nullptr) one.next->prev = one.prev;
  }
};

}  // namespace coppice::detail
