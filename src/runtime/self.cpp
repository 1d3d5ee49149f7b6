#include <coppice/runtime/detail/coroutine.hpp>

namespace coppice {

pid self::parent() const noexcept {
  const std::uint32_t index = slot_->parent_index.load(std::memory_order_relaxed);
  if (index == 0) return {};
  return pid::from_parts(kernel_->node(), index, slot_->parent_serial.load(std::memory_order_relaxed));
}

void continue_next(self& me) {
  detail::turn* t = detail::turn_here();
  if (t == nullptr || t->p != &me.process()) return;
  if (t->p->process != nullptr && t->p->process->type == &detail::coroutine::type_of)
    static_cast<detail::coroutine*>(t->p->process)->continue_next();
  else
    t->continues = true;
}

void self::stop(exit_reason reason) {
  detail::turn* t = detail::turn_here();
  if (t == nullptr || t->p != slot_) return;
  t->ending = std::move(reason);
  t->ends = true;
}

bool self::demonitor(monitor_ref ref, flush also) {
  const auto mine = section();
  if (!mine) return false;
  const bool there = kernel_->demonitor(*slot_, ref);
  if (also == flush::no || slot_->process->type != &detail::coroutine::type_of) return there;
  return static_cast<detail::coroutine*>(slot_->process)
             ->flush_saved(
                 detail::plain<down>,
                 [](const detail::envelope& e, std::uint64_t wanted) {
                   return static_cast<const detail::letter<down>&>(e).body.ref.value() == wanted;
                 },
                 ref.value()) ||
         there;
}

bool self::cancel(timer_ref ref) {
  const auto mine = section();
  if (!mine) return kernel_->disarm(ref);
  const bool pending = kernel_->cancel_timer(*slot_, ref);
  if (slot_->process->type != &detail::coroutine::type_of) return pending;
  return static_cast<detail::coroutine*>(slot_->process)
             ->flush_saved(
                 detail::plain<timer_fired>,
                 [](const detail::envelope& e, std::uint64_t wanted) {
                   return static_cast<const detail::letter<timer_fired>&>(e).body.ref.value() == wanted;
                 },
                 ref.value()) ||
         pending;
}

}  // namespace coppice
