#include <coppice/runtime/handle.hpp>

#include "internal/kernel_parts.hpp"

namespace coppice {

namespace detail {

late_use::late_use(kernel& k) noexcept {
  if (const turn* t = turn_here(); t != nullptr && t->k == &k) return;
  allowed_ = k.parts().lifecycle.begin_late_use();
  if (allowed_) counted_by_ = &k;
}
late_use::~late_use() {
  if (counted_by_ != nullptr) counted_by_->parts().lifecycle.end_late_use();
}

}  // namespace detail

bool runtime_handle::exit(pid who, exit_reason reason) const {
  const auto k = locked();
  if (!k) return false;
  const detail::late_use use{*k};
  if (use) k->send_exit(who, {pid{}, std::move(reason), false});
  return static_cast<bool>(use);
}

pid runtime_handle::where(std::string_view name) const {
  const auto k = locked();
  return k ? k->where(name) : pid{};
}

bool runtime_handle::alive(pid who) const {
  const auto k = locked();
  return k && k->alive(who);
}

bool runtime_handle::running() const {
  const auto k = locked();
  return k && detail::late_use{*k};
}

runtime_handle self::handle() const { return runtime_handle{kernel_->weak_from_this()}; }

}  // namespace coppice
