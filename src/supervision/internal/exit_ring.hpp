#pragma once
/// The last ends of a child, at most 50.
#include <coppice/base/ensure.hpp>
#include <coppice/supervision/child_history.hpp>

namespace coppice::detail {

/// What a supervisor did about the end of a child, and why. Children that are stopped together share one text.
struct exit_decision {
  exit_action action = exit_action::kept;
  std::shared_ptr<const std::string> because{};  // null: no explanation
  exit_decision(exit_action a) : action{a} {}    // NOLINT(google-explicit-constructor): most have no explanation
  exit_decision(exit_action a, std::string why)
      : action{a}, because{std::make_shared<const std::string>(std::move(why))} {}
};

/// A circular list of nodes. Children that end together allocate their nodes one after the other, so the nodes of a
/// thousand children are adjacent in memory. With one block of memory for each child, cache misses would cost as much
/// as the rest of the stop.
class exit_ring {
 public:
  static constexpr std::uint8_t most = 50;
  struct end {
    time_point at;
    std::chrono::nanoseconds uptime;
    exit_reason reason;
    exit_decision did;
    pid who;
  };
  exit_ring() = default;
  exit_ring(const exit_ring&) = delete;
  exit_ring& operator=(const exit_ring&) = delete;
  ~exit_ring() {
    for (; size_ > 0; --size_) {
      node* oldest = std::exchange(newest_->next, newest_->next->next);
      std::destroy_at(oldest);
      release(oldest, sizeof(node));
    }
  }
  void add(end e) {
    ensure(size_ <= most, "a child has more recorded ends than the maximum");
    if (size_ == most) {
      newest_ = newest_->next;
      newest_->what = std::move(e);
      return;
    }
    node* added = ::new (allocate(sizeof(node))) node{std::move(e)};
    added->next = newest_ != nullptr ? std::exchange(newest_->next, added) : added;
    newest_ = added;
    ++size_;
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] end& newest() {
    ensure(newest_ != nullptr, "a child without a recorded end was asked for its last one");
    return newest_->what;
  }
  [[nodiscard]] const end& newest() const { return const_cast<exit_ring*>(this)->newest(); }
  /// Oldest first.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const node* n = newest_;
    for (std::uint8_t i = 0; i < size_; ++i) {
      n = n->next;
      visit(n->what);
    }
  }

 private:
  struct node {
    end what;
    node* next = nullptr;
  };
  node* newest_ = nullptr;
  std::uint8_t size_ = 0;
};

}  // namespace coppice::detail
