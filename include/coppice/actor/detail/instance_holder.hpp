#pragma once
/// Whether the memory of an actor's object holds an instance, and which one.
#include <coppice/actor/detail/actor_settings.hpp>
#include <coppice/base/ensure.hpp>

namespace coppice::detail {

class instance_holder {
 public:
  [[nodiscard]] bool exists() const noexcept { return exists_; }
  /// Counts the instances. A continuation stores the number, and is dropped if its instance has ended.
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
  void begin_next_generation() noexcept { ++generation_; }

  /// Runs the constructor. If it throws, the exception passes through and there is no instance.
  void make(actor_core& core, context& me, const actor_class& type) {
    ensure(!exists_, "an instance was made although the actor has one");
    type.make(core, me);
    exists_ = true;
  }
  void destroy(actor_core& core, const actor_class& type) {
    ensure(exists_, "an instance was destroyed although the actor has none");
    destroy_if_any(core, type);
  }
  void destroy_if_any(actor_core& core, const actor_class& type) noexcept {
    if (std::exchange(exists_, false)) type.unmake(core);
  }

 private:
  std::uint64_t generation_ = 0;
  bool exists_ = false;
};

}  // namespace coppice::detail
