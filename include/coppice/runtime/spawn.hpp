#pragma once
/// Starting processes: the code that `self::spawn...` and `runtime::spawn...` share.
#include <coppice/runtime/blocking.hpp>
#include <coppice/runtime/object.hpp>
#include <coppice/runtime/operation.hpp>

namespace coppice {
namespace detail {

/// The first envelope of a coroutine process. The parent has made its frame already.
struct coroutine_start : start_letter {
  coroutine* made;
  std::size_t frame_bytes;
  coroutine_start(birth&& how, coroutine* c, std::size_t bytes)
      : start_letter{&type_of, std::move(how)}, made{c}, frame_bytes{bytes} {}
  static void make(body&, turn& t, envelope& e) {
    auto& mine = static_cast<coroutine_start&>(e);
    std::exchange(mine.made, nullptr)->settle(*t.p, mine.frame_bytes);
  }
  static void drop(kernel&, envelope& e, loss) {
    auto& mine = static_cast<coroutine_start&>(e);
    if (mine.made != nullptr) mine.made->destroy_unborn();
    std::destroy_at(&mine.with);
  }
  static const message_type type_of;
};

/// The first envelope of an object process. The new process makes the object, so that a failing constructor is an exit.
template <class T, class... Args>
struct object_start : start_letter {
  std::tuple<Args...> args;
  template <class... Given>
  explicit object_start(birth&& how, Given&&... given)
      : start_letter{&type_of, std::move(how)}, args(std::forward<Given>(given)...) {}
  static void make(body&, turn& t, envelope& e) {
    using body_t = object_body<T>;
    void* raw = allocate(sizeof(body_t));
    try {
      std::apply(
          [&](Args&... a) {
            if constexpr (says_it_traps<T>) t.p->set(slot::traps_exits, true);
            if constexpr (std::is_constructible_v<T, Args...>) {
              t.born = ::new (raw) body_t(std::move(a)...);
            } else {
              handler_self me{t};
              t.born = ::new (raw) body_t(me, std::move(a)...);
            }
          },
          static_cast<object_start&>(e).args);
    } catch (...) {
      release(raw, sizeof(body_t));
      throw;
    }
    t.p->note_body_bytes(sizeof(body_t));
  }
  static void drop(kernel&, envelope& e, loss) {
    auto& mine = static_cast<object_start&>(e);
    std::destroy_at(&mine.args);
    std::destroy_at(&mine.with);
  }
  static constexpr message_type type_of{.name = type_name<T>(),
                                        .size = sizeof(start_letter) + sizeof(std::tuple<Args...>) + 16,
                                        .drop = &drop,
                                        .object = {.deliver = &make}};
};

template <class F, class... Args>
[[nodiscard]] result<pid> start_coroutine(kernel& k, birth&& with, F&& body, Args&&... args) {
  k.before_spawn();
  void* raw = allocate(sizeof(coroutine));
  auto* c = ::new (raw) coroutine{k};
  try {
    auto made = body(static_cast<self&>(*c), std::decay_t<Args>(std::forward<Args>(args))...);
    const std::size_t bytes = newest_frame_bytes;
    auto frame = made.release();
    frame.promise().belong_to(*c);
    c->set_root(frame);
    return k.start(::new (allocate(sizeof(coroutine_start))) coroutine_start{std::move(with), c, bytes});
  } catch (...) {
    c->destroy_unborn();
    throw;
  }
}

/// The same for a function of the user. One that cannot be the body of a process is refused in one sentence, without
/// further errors from here.
template <class F, class... Args>
[[nodiscard]] result<pid> spawn_coroutine(kernel& k, birth&& with, F&& body, Args&&... args) {
  if constexpr (is_sound_body<F, Args...>())
    return start_coroutine(k, std::move(with), std::forward<F>(body), std::forward<Args>(args)...);
  else
    return {};
}

template <class T, class... Args>
[[nodiscard]] result<pid> spawn_plain_object(kernel& k, birth&& with, Args&&... args) {
  k.before_spawn();
  using letter_t = object_start<T, std::decay_t<Args>...>;
  static_assert(alignof(T) <= alignof(std::max_align_t), "over-aligned objects are not supported");
  static_assert(alignof(std::tuple<std::decay_t<Args>...>) <= alignof(std::max_align_t),
                "over-aligned arguments are not supported");
  static_assert(sizeof(letter_t) <= letter_t::type_of.size);
  void* raw = allocate(letter_t::type_of.size);
  try {
    return k.start(::new (raw) letter_t{std::move(with), std::forward<Args>(args)...});
  } catch (...) {
    release(raw, letter_t::type_of.size);
    throw;
  }
}

/// Spawns a plain object, or, if one of its members is a coroutine, a coroutine that owns the object.
template <class T, class... Args>
[[nodiscard]] result<pid> spawn_object(kernel& k, birth&& with, Args&&... args) {
  if constexpr (!is_sound_object<T, Args...>()) {
    return {};
  } else if constexpr (waits<T>) {
    const start_ack ack{with.parent, with.ack};
    return start_coroutine(k, std::move(with), &serve<T, std::decay_t<Args>...>, ack, std::forward<Args>(args)...);
  } else {
    return spawn_plain_object<T>(k, std::move(with), std::forward<Args>(args)...);
  }
}

/// Without a parent the link is ignored. Throws `std::invalid_argument` if the mailbox makes no sense.
inline birth birth_with(const spawn_options& options, pid parent) {
  birth with{.parent = parent, .linked = options.link && parent};
  with.called = birth::by(std::string{options.name}, std::string{options.label});
  with.policy = make_policy_of_options(options.mailbox);
  return with;
}

inline pid or_throw(result<pid> started) {
  if (!started) throw spawn_failed{std::move(started.error())};
  return *started;
}

}  // namespace detail

template <class F, class... Args>
  requires detail::meant_as_body<F, Args...>
pid self::spawn(F body, Args&&... args) {
  return detail::or_throw(
      detail::spawn_coroutine(*kernel_, {.parent = id()}, std::move(body), std::forward<Args>(args)...));
}

template <class F, class... Args>
  requires detail::meant_as_body<F, Args...>
pid self::spawn_link(F body, Args&&... args) {
  const pid child = detail::or_throw(detail::spawn_coroutine(*kernel_, {.parent = id(), .linked = true},
                                                             std::move(body), std::forward<Args>(args)...));
  adopt(child, true, {});
  return child;
}

template <class F, class... Args>
  requires detail::meant_as_body<F, Args...>
monitored self::spawn_monitor(F body, Args&&... args) {
  const monitor_ref ref = unborn_monitor();
  const pid child = detail::or_throw(detail::spawn_coroutine(*kernel_, {.parent = id(), .watched_as = ref},
                                                             std::move(body), std::forward<Args>(args)...));
  adopt(child, false, ref);
  return {child, ref};
}

template <class T, class... Args>
  requires detail::meant_as_object<T, Args...>
ref<T> self::spawn(Args&&... args) {
  return ref<T>{detail::or_throw(detail::spawn_object<T>(*kernel_, {.parent = id()}, std::forward<Args>(args)...))};
}

template <class T, class... Args>
ref<T> self::spawn_link(Args&&... args) {
  const pid child = detail::or_throw(
      detail::spawn_object<T>(*kernel_, {.parent = id(), .linked = true}, std::forward<Args>(args)...));
  adopt(child, true, {});
  return ref<T>{child};
}

template <class T, class... Args>
monitored self::spawn_monitor(Args&&... args) {
  const monitor_ref ref = unborn_monitor();
  const pid child = detail::or_throw(
      detail::spawn_object<T>(*kernel_, {.parent = id(), .watched_as = ref}, std::forward<Args>(args)...));
  adopt(child, false, ref);
  return {child, ref};
}

template <class F, class... Args>
  requires detail::meant_as_body<F, Args...>
result<pid> self::spawn(const spawn_options& options, F body, Args&&... args) {
  auto started = detail::spawn_coroutine(*kernel_, detail::birth_with(options, id()), std::move(body),
                                         std::forward<Args>(args)...);
  if (started && options.link) adopt(*started, true, {});
  return started;
}

template <class T, class... Args>
result<ref<T>> self::spawn(const spawn_options& options, Args&&... args) {
  auto started = detail::spawn_object<T>(*kernel_, detail::birth_with(options, id()), std::forward<Args>(args)...);
  if (!started) return std::unexpected{std::move(started.error())};
  if (options.link) adopt(*started, true, {});
  return ref<T>{*started};
}

}  // namespace coppice
