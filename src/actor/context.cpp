#include <coppice/actor/actor.hpp>

#include "internal/child_processes.hpp"
#include "internal/child_stopping.hpp"
#include "internal/ends_of_others.hpp"
#include "internal/fault_handling.hpp"
#include "internal/future_handling.hpp"
#include "internal/mail_handling.hpp"

namespace coppice::actor {

std::vector<pid> context::children() const {
  std::vector<pid> all;
  if (core_.rare)
    for (const detail::child_record* c : core_.rare->children.in_order()) all.push_back(c->who);
  return all;
}

std::string context::path() const {
  const auto name = turn_.k->name_of(id());
  return name.empty() ? to_string(id()) : name;
}

pid context::child(std::string_view name) const {
  if (core_.rare)
    for (const detail::child_record* c : core_.rare->children.in_order())
      if (c->name == name) return c->who;
  return {};
}

detail::envelope& context::close_mail(any_message& message) {
  if (message.empty()) throw std::logic_error{"this message was moved away before"};
  auto& mail =
      const_cast<detail::envelope&>(message.content());  // NOLINT(cppcoreguidelines-pro-type-const-cast): its own
  if (mail.type->mail.close != nullptr) mail.type->mail.close(mail, origin_);
  return mail;
}

std::string context::child_name(std::string_view name) const {
  if (name.empty() || name.front() == '$' || name.find('/') != std::string_view::npos)
    throw std::invalid_argument{"the name of an actor must not be empty, begin with a '$' or contain a '/': '" +
                                std::string{name} + "'"};
  return std::string{name};
}

result<pid> context::spawn(const child_spec& spec) { return detail::child_processes{core_, turn_}.start(spec); }

void context::ensure_may_spawn() const { detail::ensure_may_spawn(core_); }

void context::add_child(pid who, std::string name, coppice::shutdown how) {
  detail::add_child(core_, turn_, {.who = who, .name = std::move(name), .shutdown = how});
}

void context::stop_process(pid who) {
  detail::child_record* c = core_.find_child(who);
  // An actor that is not a child has no limit, because only its parent knows how long its stop may take.
  if (c == nullptr) return detail::send_signal(*turn_.k, who, detail::signals::stop{exit_reason::normal()});
  if (c->spec)  // after this handler: it may be using what the stop removes
    return detail::send_signal(*turn_.k, id(),
                               detail::signals::stop_child_process{.place = c->place, .reason = exit_reason::normal()});
  // At once, so that the child takes no mail that this handler sends to it later.
  detail::child_stopping{core_, turn_}.stop(*c, exit_reason::normal());
}

void context::poison_process(pid who) {
  if (const detail::child_record* c = core_.find_child(who); c != nullptr && c->spec) return stop_process(who);
  turn_.k->send(who, detail::signal::message,
                detail::make_letter<detail::poison_pill>(detail::plain<detail::poison_pill>));
}

void context::fail(exit_reason why) { detail::fault_handling{core_, turn_}.fail(std::move(why), nullptr, {}, origin_); }

void context::through_middleware(pid to, const detail::message_type& type, const void* content,
                                 const std::function<void()>& inner) {
  detail::run_through(core_.settings->on_send, inner, *this, to, message_view{type, content});
}

void context::watch(pid who) { detail::ends_of_others{core_, turn_}.watch(who); }

void context::unwatch(pid who) { detail::ends_of_others{core_, turn_}.unwatch(who); }

std::shared_ptr<detail::future_state<terminated>> context::expect_end(pid who, std::chrono::nanoseconds timeout) {
  if (timeout.count() < 0) throw std::invalid_argument{"stop_future, poison_future: the timeout is negative"};
  auto state = std::make_shared<detail::future_state<terminated>>();
  detail::future_handling{core_, turn_}.expect_end(who, state, timeout);
  return state;
}

future<terminated> context::stop_future(pid who, std::chrono::nanoseconds timeout) {
  auto state = expect_end(who, timeout);
  stop(who);
  return future<terminated>{std::move(state)};
}

future<terminated> context::poison_future(pid who, std::chrono::nanoseconds timeout) {
  auto state = expect_end(who, timeout);
  poison(who);
  return future<terminated>{std::move(state)};
}

bool context::forward_copy(pid to, const any_message& message) {
  const detail::envelope& mail = message.content();
  if (mail.type->routing.copy == nullptr) return false;
  any_message copy{*turn_.k, mail.type->routing.copy(mail)};
  post_with(to, detail::content_of(*mail.type), message.opened(), [&]() -> detail::envelope* {
    if (copy.empty()) return nullptr;
    detail::mail_origin again = origin_;
    detail::envelope* e = copy.release();
    if (e->type->mail.close != nullptr) e->type->mail.close(*e, again);
    return e;
  });
  return true;
}

std::size_t context::stashed() const noexcept { return core_.rare ? core_.rare->stash.size() : 0; }

void context::put_into_stash(detail::envelope* e) {
  e->tag = detail::envelope::tag_of(id().serial(), detail::signal::message);
  turn_.k->keep_trace_id(*e);
  core_.parts().stash.push_back(e);
}

void context::unstash(std::size_t how_many) { detail::mail_handling{core_, turn_}.unstash(how_many); }

std::uint64_t context::dropped() const { return core_.rare && core_.rare->policy ? core_.rare->policy->dropped() : 0; }

void context::become(behaviour next) {
  core_.change_behaviours([&](detail::behaviour_stack& b) {
    b.all.erase(b.all.begin() + static_cast<std::ptrdiff_t>(b.permanent), b.all.end());
    b.all.push_back(std::move(next));
  });
}

void context::become_stacked(behaviour next) {
  core_.change_behaviours([&](detail::behaviour_stack& b) { b.all.push_back(std::move(next)); });
}

void context::become_first(behaviour first) {
  core_.change_behaviours([&](detail::behaviour_stack& b) { b = {.all = {std::move(first)}, .permanent = 1}; });
}

void context::unbecome() {
  core_.change_behaviours([](detail::behaviour_stack& b) {
    if (b.all.size() > b.permanent) b.all.pop_back();
  });
}

void context::add_timer(std::uint64_t number, std::chrono::nanoseconds delay, detail::timer_entry entry,
                        detail::envelope* first) {
  core_.parts().timers.add(*turn_.k, id(), number, delay, std::move(entry), first);
}

bool context::cancel(actor_timer timer) { return core_.rare && core_.rare->timers.cancel(*turn_.k, timer.value()); }

void context::set_receive_timeout(std::chrono::nanoseconds after) {
  if (after.count() <= 0) throw std::invalid_argument{"set_receive_timeout: the time must be positive"};
  core_.set_receive_timeout(*turn_.k, after);
}

void context::expect_answer(const std::shared_ptr<detail::future_base>& f, std::chrono::nanoseconds timeout) {
  detail::future_handling{core_, turn_}.expect_answer(f, timeout);
}

void context::log(log_part part, log_level level, std::string_view text, std::initializer_list<log_field> fields) {
  if (!turn_.k->logs(level, part)) return;
  std::vector<log_field> all{{"actor", path()}};
  all.insert(all.end(), fields.begin(), fields.end());
  turn_.k->log(part, level, text, all);
}

}  // namespace coppice::actor
