#pragma once
/// Taking over an idle process for a moment.
#include <coppice/runtime/detail/kernel.hpp>

namespace coppice::detail {

/// Ends the ownership of a process whose queue begins with `mine`: the process becomes idle, or is scheduled if there
/// is mail behind `mine`. `mine` stays the caller's.
void release_claim(kernel& k, slot& p, envelope& mine);

/// Owns an idle process until the end of the scope.
class claim {
 public:
  claim(kernel& k, slot& p) noexcept : kernel_{k}, slot_{p}, held_{p.mail.claim(&mine_)} {}
  claim(const claim&) = delete;
  claim& operator=(const claim&) = delete;
  ~claim() {
    if (held_) release_claim(kernel_, slot_, mine_);
  }
  /// False: the process is not idle.
  explicit operator bool() const noexcept { return held_; }

 private:
  kernel& kernel_;
  slot& slot_;
  envelope mine_{nullptr};
  bool held_;
};

}  // namespace coppice::detail
