#pragma once
#include <coppice/runtime/detail/kernel.hpp>

namespace coppice::detail {

/// Counts a piece of blocking work, for the counters, for freezing and for the end of the runtime, from its submission
/// until this object is destroyed. Its pointer to the kernel is weak: work that hangs must not keep a runtime that has
/// ended. Thread safety: one thread at a time.
class blocking_token {
 public:
  blocking_token(kernel& k, std::string_view what);
  ~blocking_token();
  blocking_token(const blocking_token&) = delete;
  blocking_token& operator=(const blocking_token&) = delete;
  /// The work begins.
  void begin();

 private:
  std::weak_ptr<kernel> kernel_;
  pid owner_;
  std::string_view what_;
  bool begun_ = false;
};

}  // namespace coppice::detail
