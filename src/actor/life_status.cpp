#include <string>

#include <coppice/actor/detail/life_status.hpp>

namespace coppice::detail {

namespace {
[[noreturn, gnu::cold, gnu::noinline]] void refuse(life state, life_event event) {
  ensure(false,
         "the event " + std::string{to_string(event)} + " reached an actor that is " + std::string{to_string(state)});
  std::unreachable();
}
}  // namespace

inline void life_status::publish() noexcept {
  if (state_ == life::creating) return;
  const bool takes = takes_mail();
  const body_type& wanted = takes && slow_paths_ == 0 ? class_->direct : class_->indirect;
  if (&wanted != type || takes != published_takes_mail_) publish_change(takes, wanted);
}

life_action life_status::change(life_event event) {
  const life_step step = step_of(state_, event);
  if (step.action == life_action::forbidden) [[unlikely]]
    refuse(state_, event);
  if (step.next != state_) {
    state_ = step.next;
    publish();
  }
  return step.action;
}

void life_status::set_broken() noexcept {
  state_ = life::ended;
  publish();
}

void life_status::suspend() {
  suspensions_.raise();
  publish();
}

void life_status::end_suspensions(std::uint32_t how_many) {
  suspensions_.lower(how_many, "an actor was resumed more often than it was suspended");
  publish();
}

std::uint32_t life_status::end_suspensions_of_restart() {
  const std::uint32_t all = suspensions_of_restart_.value();
  suspensions_of_restart_.lower(all, "more suspensions ended with a restart than waited for it");
  end_suspensions(all);
  return all;
}

void life_status::add_message_without_room() {
  messages_without_room_.raise();
  publish();
}

void life_status::remove_messages_without_room(std::uint32_t how_many) {
  messages_without_room_.lower(how_many, "a receiver has made room for more messages than were waiting");
  publish();
}

void life_status::set_slow_path(slow_path why, bool on) noexcept {
  const auto bit = std::to_underlying(why);
  const auto paths = static_cast<std::uint8_t>(on ? slow_paths_ | bit : slow_paths_ & ~bit);
  if (std::exchange(slow_paths_, paths) != paths) publish();
}

[[gnu::noinline]] void life_status::publish_change(bool takes, const body_type& wanted) noexcept {
  turn* t = turn_here();
  if (t == nullptr) return;
  const kernel_section mine{*t->p, id_.serial()};
  // Not if the process was abandoned, and not at its end: the slot may belong to another process.
  if (!mine || t->p->process != this) return;
  type = &wanted;
  published_takes_mail_ = takes;
  // While the actor only put mail aside, the kernel cleared this bit without searching the queue for signals. A signal
  // that is sent from now on sets the bit again.
  if (takes && t->p->is(slot::puts_mail_aside) && t->p->mail.tail.load() != t->p->mail.head)
    t->p->urgent.fetch_or(look_for_fast, std::memory_order_relaxed);
  t->p->set(slot::puts_mail_aside, !takes);
}

}  // namespace coppice::detail
