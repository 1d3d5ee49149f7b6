#pragma once
/// An event bus: a process with handlers, which can be added and removed. Each event is passed to all handlers.
///
///     struct audit {                                    // any class that handles the event
///       explicit audit(std::string path);
///       void handle(const order& o);
///       int handle(count_orders);                       // optional: calls to this handler
///     };
///     const auto orders = me.spawn_link<event_bus<order>>();
///     const result<void> added = co_await add_handler<audit>(orders, "audit", path);
///     notify(orders, order{...});                       // does not wait
///     const result<int> n = co_await call_handler<audit, count_orders>(orders, "audit");
///
/// Handlers live in the process of the bus and run there, in the order in which they were added. A handler that throws
/// is removed, which is logged and published as `handler_removed`; the others go on. A handler may take the `self&` of
/// the bus after the event.
#include <algorithm>
#include <concepts>
#include <map>
#include <memory>

#include <coppice/runtime/runtime.hpp>

namespace coppice {

/// What a handler may return for an event, instead of nothing.
enum class handling : std::uint8_t { go_on, remove_me };

/// Published (`me.subscribe<handler_removed>()`) when a handler was removed because it threw, or because its owner has
/// ended. The owner of a supervised handler, the process that added it, also receives it as a message whenever the
/// handler is removed, for whatever reason.
struct handler_removed {
  pid bus;
  std::string id;
  exit_reason reason;
};

namespace detail {

/// The address of this variable identifies the type.
template <class T>
inline constexpr char type_mark = 0;

template <class H, class M>
decltype(auto) handle_with(H& handler, M&& m, self& me) {
  return call_handle(handler, [&]() -> self& { return me; }, std::forward<M>(m));
}

}  // namespace detail

/// A class that can be a handler of `Event`, made from copies of the arguments, with or without `self&` before them.
/// `terminate(const exit_reason&)`, with or without `self&` behind it, is called when the handler is removed, but not
/// when it threw or when the bus ends.
template <class H, class Event, class... Args>
concept handler_of = detail::handles_with_or_without<H, self, const Event&> && detail::object_from<H, Args...>;

template <class Event>
class event_bus {
  struct hosted {
    virtual ~hosted() = default;
    virtual handling on(const Event& e, self& me) = 0;
    virtual void terminate(const exit_reason& why, self& me) = 0;
    virtual void* as(const char* type) = 0;
  };
  template <class H>
  struct host final : hosted {
    H handler;
    template <class... Args>
    explicit host(Args&&... args) : handler(std::forward<Args>(args)...) {}
    handling on(const Event& e, self& me) override {
      if constexpr (std::is_same_v<decltype(detail::handle_with(handler, e, me)), handling>)
        return detail::handle_with(handler, e, me);
      else
        return detail::handle_with(handler, e, me), handling::go_on;
    }
    void terminate(const exit_reason& why, self& me) override {
      if constexpr (detail::has_terminate<H>) detail::call_terminate(handler, why, me);
    }
    void* as(const char* type) override { return type == &detail::type_mark<H> ? &handler : nullptr; }
  };
  using maker = std::move_only_function<std::unique_ptr<hosted>(self&)>;

 public:
  // -- its messages; the functions below send them
  struct happened {
    Event event;
  };
  struct happened_sync {
    using reply = void;
    Event event;
  };
  enum class bound : bool { no, to_the_caller };
  struct add {
    using reply = void;
    std::string id;
    bound how;
    maker make;
  };
  struct remove {
    using reply = void;
    std::string id;
  };
  struct which {
    using reply = std::vector<std::string>;
  };
  template <class H, class M>
  struct to_handler {
    using reply = reply_of<M>;
    std::string id;
    M message;
  };

  template <class H, class... Args>
  [[nodiscard]] static maker making(Args&&... args) {
    return [... args = std::decay_t<Args>(std::forward<Args>(args))]([[maybe_unused]] self& me) mutable {
      std::unique_ptr<hosted> made;
      if constexpr (std::is_constructible_v<H, std::decay_t<Args>...>)
        made = std::make_unique<host<H>>(std::move(args)...);
      else
        made = std::make_unique<host<H>>(me, std::move(args)...);
      return made;
    };
  }

  void handle(const happened& m, self& me) { tell_all(m.event, me); }
  void handle(const happened_sync& m, self& me) { tell_all(m.event, me); }
  void handle(add m, reply_to<void> to, self& me) {
    if (find(m.id) != handlers_.end())
      return (void)to.fail(error{errc::duplicate_id, "there is a handler '" + m.id + "' already"});
    std::unique_ptr<hosted> made;
    try {
      made = m.make(me);
    } catch (...) {
      const exit_reason why = detail::reason_of_failure(*detail::turn_here());
      to.fail(error{errc::start_failed, "the handler '" + m.id + "' could not be made: " + why.to_string()});
      return;
    }
    registered fresh{.id = std::move(m.id), .handler = std::move(made)};
    if (m.how == bound::to_the_caller) {
      fresh.owner = to.caller();
      fresh.watched = me.monitor(fresh.owner);
    }
    handlers_.push_back(std::move(fresh));
    to.reply();
  }
  void handle(const remove& m, reply_to<void> to, self& me) {
    const auto found = find(m.id);
    if (found == handlers_.end()) return (void)to.fail(no_such_handler(m.id));
    take_out(found, exit_reason::normal(), me);
    to.reply();
  }
  std::vector<std::string> handle(which) const {
    std::vector<std::string> ids;
    for (const registered& h : handlers_) ids.push_back(h.id);
    return ids;
  }
  template <class H, class M>
  void handle(to_handler<H, M> m, reply_to<reply_of<M>> to, self& me) {
    const auto found = find(m.id);
    if (found == handlers_.end()) return (void)to.fail(no_such_handler(m.id));
    auto* handler = static_cast<H*>(found->handler->as(&detail::type_mark<H>));
    if (handler == nullptr)
      return (void)to.fail(error{errc::invalid, "the handler '" + m.id + "' is not a " + std::string{type_name<H>()}});
    try {
      if constexpr (std::is_void_v<reply_of<M>>) {
        detail::handle_with(*handler, std::move(m.message), me);
        to.reply();
      } else {
        to.reply(detail::handle_with(*handler, std::move(m.message), me));
      }
    } catch (...) {
      const exit_reason why = detail::reason_of_failure(*detail::turn_here());
      to.fail(error{errc::exited, why.to_string()});
      failed(found, why, me);
    }
  }
  /// The owner of a supervised handler has ended.
  void handle(const down& d, self& me) {
    const auto found = std::ranges::find(handlers_, d.ref, &registered::watched);
    if (found == handlers_.end()) return;
    me.publish(handler_removed{me.id(), found->id, d.reason});
    found->owner = {};
    found->watched = {};
    take_out(found, d.reason, me);
  }

 private:
  struct registered {
    std::string id;
    std::unique_ptr<hosted> handler;
    pid owner{};
    monitor_ref watched{};
  };
  using place = typename std::vector<registered>::iterator;

  [[nodiscard]] place find(std::string_view id) { return std::ranges::find(handlers_, id, &registered::id); }
  [[nodiscard]] static error no_such_handler(const std::string& id) {
    return error{errc::not_found, "there is no handler '" + id + "'"};
  }

  void tell_all(const Event& e, self& me) {
    for (std::size_t i = 0; i < handlers_.size();) {
      const place at = handlers_.begin() + static_cast<std::ptrdiff_t>(i);
      try {
        if (at->handler->on(e, me) == handling::go_on) {
          ++i;
          continue;
        }
      } catch (...) {
        failed(at, detail::reason_of_failure(*detail::turn_here()), me);
        continue;
      }
      take_out(at, exit_reason::normal(), me);
    }
  }
  void failed(place at, const exit_reason& why, self& me) {
    me.log(log_parts::behaviour, log_level::error, "event handler removed",
           {{"bus", to_string(me.id())}, {"handler", at->id}, {"reason", why.to_string()}});
    me.publish(handler_removed{me.id(), at->id, why});
    drop(at, why, me);
  }
  void take_out(place at, const exit_reason& why, self& me) {
    try {
      at->handler->terminate(why, me);
    } catch (...) {
      me.log(log_parts::behaviour, log_level::error, "event handler threw in terminate while it was removed",
             {{"bus", to_string(me.id())},
              {"handler", at->id},
              {"reason", detail::reason_of_failure(*detail::turn_here()).to_string()}});
    }
    drop(at, why, me);
  }
  void drop(place at, const exit_reason& why, self& me) {
    if (at->owner) {
      me.demonitor(at->watched);
      me.send(at->owner, handler_removed{me.id(), at->id, why});
    }
    handlers_.erase(at);
  }

  std::vector<registered> handlers_;
};

/// Adds a handler, which the process of the bus makes from the arguments. Errors: `duplicate_id` if there is a handler
/// with that id, `start_failed` if its constructor throws.
template <class H, class Event, class... Args>
  requires handler_of<H, Event, Args...>
[[nodiscard]] auto add_handler(ref<event_bus<Event>> bus, std::string id, Args&&... args) {
  using b = event_bus<Event>;
  return bus.template call<typename b::add>(std::move(id), b::bound::no,
                                            b::template making<H>(std::forward<Args>(args)...));
}
/// The same for a supervised handler. The process that adds it is its owner: the handler is removed when the owner has
/// ended. If the handler is removed earlier, the owner receives `handler_removed`.
template <class H, class Event, class... Args>
  requires handler_of<H, Event, Args...>
[[nodiscard]] auto add_supervised_handler(ref<event_bus<Event>> bus, std::string id, Args&&... args) {
  using b = event_bus<Event>;
  return bus.template call<typename b::add>(std::move(id), b::bound::to_the_caller,
                                            b::template making<H>(std::forward<Args>(args)...));
}
/// Removes a handler. Error: `not_found`.
template <class Event>
[[nodiscard]] auto remove_handler(ref<event_bus<Event>> bus, std::string id) {
  return bus.template call<typename event_bus<Event>::remove>(std::move(id));
}
/// Sends an event to all handlers and does not wait.
template <class Event>
void notify(ref<event_bus<Event>> bus, std::type_identity_t<Event> event) {
  bus.template cast<typename event_bus<Event>::happened>(std::move(event));
}
/// Sends an event to all handlers and waits until they have handled it.
template <class Event>
[[nodiscard]] auto sync_notify(ref<event_bus<Event>> bus, std::type_identity_t<Event> event) {
  return bus.template call<typename event_bus<Event>::happened_sync>(std::move(event));
}
/// Calls one handler, which must be of type `H`. `M` names its reply, as in any call. Errors: `not_found`; `invalid` if
/// the handler is of another type; `exited` if the handler throws, which also removes it.
template <class H, callable_message M, class Event, class... Args>
  requires detail::handles_with_or_without<H, self, M>
[[nodiscard]] auto call_handler(ref<event_bus<Event>> bus, std::string id, Args&&... args) {
  using message = typename event_bus<Event>::template to_handler<H, M>;
  return bus.template call<message>(std::move(id), M{std::forward<Args>(args)...});
}
/// The ids of the handlers, in the order in which they were added.
template <class Event>
[[nodiscard]] auto which_handlers(ref<event_bus<Event>> bus) {
  return bus.template call<typename event_bus<Event>::which>();
}

// -- from plain threads

template <class H, class Event, class... Args>
  requires handler_of<H, Event, Args...>
[[nodiscard]] result<void> add_handler(runtime& rt, ref<event_bus<Event>> bus, std::string id, Args&&... args) {
  using b = event_bus<Event>;
  return rt.call(bus.template call<typename b::add>(std::move(id), b::bound::no,
                                                    b::template making<H>(std::forward<Args>(args)...)));
}
template <class Event>
void notify(runtime& rt, ref<event_bus<Event>> bus, std::type_identity_t<Event> event) {
  rt.cast<typename event_bus<Event>::happened>(bus, std::move(event));
}
template <class Event>
[[nodiscard]] result<void> sync_notify(runtime& rt, ref<event_bus<Event>> bus, std::type_identity_t<Event> event) {
  return rt.call(bus.template call<typename event_bus<Event>::happened_sync>(std::move(event)));
}

}  // namespace coppice
