#include <coppice/actor/actor.hpp>

namespace coppice {

std::vector<pid> context::children() const {
  std::vector<pid> all;
  for (const detail::child_record* c : core_.children_in_order()) all.push_back(c->who);
  return all;
}

std::string context::path() const {
  const auto info = turn_.k->name_of(id());
  return info.empty() ? to_string(id()) : info;
}

pid context::child(std::string_view name) const {
  for (const detail::child_record* c : core_.children_in_order())
    if (c->name == name) return c->who;
  return {};
}

detail::envelope& context::open_mail(any_message& message) {
  if (message.empty()) throw std::logic_error{"this message was moved away before"};
  auto& mail =
      const_cast<detail::envelope&>(message.content());  // NOLINT(cppcoreguidelines-pro-type-const-cast): its own
  if (mail.type->close != nullptr) mail.type->close(mail, origin_);
  return mail;
}

std::string context::child_name(std::string_view name) const {
  if (name.empty() || name.front() == '$' || name.find('/') != std::string_view::npos)
    throw std::invalid_argument{"the name of an actor must not be empty, begin with a '$' or contain a '/': '" +
                                std::string{name} + "'"};
  return std::string{name};
}

result<pid> context::spawn(const child_spec& spec) { return core_.start_process(turn_, spec); }

void context::through_middleware(pid to, const detail::message_type& type, const void* content,
                                 const std::function<void()>& inner) {
  const auto& chain = core_.settings().on_send;
  const message_view view{type, content};
  const std::function<void(std::size_t)> from = [&](std::size_t i) {
    if (i == chain.size()) return inner();
    chain[i](*this, to, view, [&, i] { from(i + 1); });
  };
  from(0);
}

void context::watch(pid who) {
  detail::handler_self mine = me();
  core_.watch(mine, who);
}

void context::unwatch(pid who) {
  detail::handler_self mine = me();
  core_.unwatch(mine, who);
}

std::shared_ptr<detail::future_state<terminated>> context::expect_end(pid who, std::chrono::nanoseconds timeout) {
  if (timeout.count() < 0) throw std::invalid_argument{"stop_future, poison_future: the timeout is negative"};
  auto state = std::make_shared<detail::future_state<terminated>>();
  detail::handler_self mine = me();
  core_.expect_end(mine, turn_, who, state, timeout);
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
  if (mail.type->copy == nullptr) return false;
  any_message copy{*turn_.k, mail.type->copy(mail)};
  post_with(to, detail::content_of(*mail.type), message.opened(), [&]() -> detail::envelope* {
    if (copy.empty()) return nullptr;
    detail::mail_origin again = origin_;
    detail::envelope* e = copy.release();
    if (e->type->close != nullptr) e->type->close(*e, again);
    return e;
  });
  return true;
}

std::size_t context::stashed() const noexcept {
  const detail::actor_parts* parts = core_.parts_if_any();
  return parts != nullptr ? parts->stash.size() : 0;
}

std::uint64_t context::dropped() const {
  const detail::actor_parts* parts = core_.parts_if_any();
  return parts != nullptr && parts->gate ? parts->gate->dropped() : 0;
}

void context::become(behaviour next) {
  auto& all = core_.parts().behaviours;
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(core_.parts().first_behaviours), all.end());
  become_stacked(std::move(next));
}

void context::become_stacked(behaviour next) {
  core_.parts().behaviours.push_back(std::move(next));
  core_.settle();
}

void context::become_first(behaviour first) {
  become(std::move(first));
  core_.parts().first_behaviours = 1;
}

void context::unbecome() {
  auto& all = core_.parts().behaviours;
  if (all.size() > core_.parts().first_behaviours) all.pop_back();
  core_.settle();
}

void context::add_timer(std::uint64_t id, std::chrono::nanoseconds delay, detail::timer_entry entry,
                        detail::envelope* first) {
  entry.due = turn_.k->time_after(delay);
  entry.armed = turn_.k->arm(entry.due, this->id(), detail::signal::message, first);
  core_.parts().timers.emplace(id, std::move(entry));
}

void context::log(log_level level, std::string_view text, std::initializer_list<log_field> fields) {
  if (!turn_.k->logs(level)) return;
  std::vector<log_field> all{{"actor", path()}};
  all.insert(all.end(), fields.begin(), fields.end());
  turn_.k->log(level, text, all);
}

}  // namespace coppice
