#pragma once
#include <coppice/runtime/detail/kernel.hpp>

namespace coppice::detail {

/// Lets a thread that may outlive the runtime use its kernel: the end of the runtime waits until this object is
/// destroyed. False: the runtime has ended, and the caller must not send. Counts nothing in a turn of this kernel, for
/// which the end waits anyway.
class late_use {
 public:
  explicit late_use(kernel& k) noexcept;
  ~late_use();
  late_use(const late_use&) = delete;
  late_use& operator=(const late_use&) = delete;
  explicit operator bool() const noexcept { return allowed_; }

 private:
  kernel* counted_by_ = nullptr;
  bool allowed_ = true;
};

}  // namespace coppice::detail
