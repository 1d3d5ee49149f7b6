#pragma once
/// What all actors of one `props` share, and what the library has to know of an actor's class.
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <coppice/actor/mailbox.hpp>
#include <coppice/actor/middleware.hpp>
#include <coppice/actor/strategy.hpp>
#include <coppice/runtime/object.hpp>
#include <coppice/spec/shutdown.hpp>

namespace coppice::detail {

struct actor_core;

/// How long a parent waits for a child actor that was asked to stop, and then for one that was killed.
inline constexpr coppice::shutdown default_actor_shutdown{std::chrono::seconds{5}};
inline constexpr std::chrono::nanoseconds default_abandon_after = std::chrono::seconds{5};

/// Everything that `props` say, apart from the class. Shared by all actors made from them.
struct actor_settings {
  std::function<void(void* where, context&)> make{};
  actor_strategy strategy{};
  std::optional<actor_strategy> guardian{};
  actor::mailbox mailbox{};
  std::vector<receive_middleware> on_receive{};
  std::vector<send_middleware> on_send{};
  std::vector<std::function<void(context&)>> on_init{};
  coppice::shutdown shutdown = default_actor_shutdown;
  std::chrono::nanoseconds abandon_after = default_abandon_after;
  bool keep_children = false;
  bool watch_children = false;
};

/// What the library has to know of an actor's class.
struct actor_class {
  /// Mail that carries its handler goes to the handler directly if its `for_body` is the body's type. That type is
  /// `direct` only while the actor takes mail and has no `life_status::slow_path`. Otherwise it is `indirect`, and all
  /// mail goes through `offer`.
  body_type direct{};
  body_type indirect{};
  void (*make)(actor_core&, context&) = nullptr;
  void (*unmake)(actor_core&) noexcept = nullptr;
  void (*free)(actor_core&) noexcept = nullptr;
  /// Calls the handler for that type of message. False: the class has none.
  bool (*dispatch)(actor_core&, context&, const message_type& type, void* message) = nullptr;
  /// The handler for `any_message`; null: the class has none.
  void (*rest)(actor_core&, context&, any_message&&) = nullptr;
  /// The class's own `decide`; null: it has none.
  directive (*decide)(actor_core&, context&, const child_failure&) = nullptr;
};

}  // namespace coppice::detail
