#pragma once
#include <atomic>

#include <coppice/runtime/detail/slot.hpp>

namespace coppice::detail {

/// For critical sections of a few instructions with hardly any contention.
class spin_lock {
 public:
  void lock() noexcept {
    while (held_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      while (held_.load(std::memory_order_relaxed)) cpu_pause();
  }
  [[nodiscard]] bool try_lock() noexcept {
    return !held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire);
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace coppice::detail
