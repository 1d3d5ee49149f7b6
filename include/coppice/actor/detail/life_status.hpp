#pragma once
/// The state of an actor and its counters, and whether it takes mail.
///
/// Every setter publishes the result: the type of the body, which decides whether mail may be handed to its handler
/// directly, and the flag by which the kernel knows that this actor only puts its mail aside. There is no other way to
/// change them, so the published values cannot be out of date. While an instance is created nothing is published: the
/// kernel does not read the values before the creation is over, and then the new state is published.
#include <coppice/actor/detail/actor_settings.hpp>
#include <coppice/actor/detail/guarded_counter.hpp>
#include <coppice/actor/detail/life_state.hpp>
#include <coppice/actor/fwd.hpp>

namespace coppice::detail {

/// Thread safety: the owner of the process only.
class life_status : public body {
 public:
  /// Reasons why the mail of a running actor cannot go to its handler directly.
  enum class slow_path : std::uint8_t { middleware = 1, behaviours = 2, receive_timeout = 4, mail_aside = 8 };

  /// `suspended`: how many suspensions the actor begins with, which is the number of its parent.
  life_status(const actor_class& c, std::uint32_t suspended) noexcept
      : body{&c.indirect}, class_{&c}, suspensions_{suspended} {}
  life_status(const life_status&) = delete;
  life_status& operator=(const life_status&) = delete;

  [[nodiscard]] const actor_class& type_of_actor() const noexcept { return *class_; }
  [[nodiscard]] pid id() const noexcept { return id_; }
  [[nodiscard]] life state() const noexcept { return state_; }

  [[nodiscard]] bool takes_mail() const noexcept { return decides() && messages_without_room_.is_zero(); }
  /// Whether it may decide about failures of its children now.
  [[nodiscard]] bool decides() const noexcept { return state_ == life::running && suspensions_.is_zero(); }
  /// Whether neither a restart nor a stop has begun.
  [[nodiscard]] bool is_active() const noexcept {
    return state_ == life::running || state_ == life::creating || state_ == life::failed;
  }
  [[nodiscard]] bool is_restarting() const noexcept {
    return state_ == life::restarting || state_ == life::restarting_after_failure;
  }
  [[nodiscard]] bool is_stopping() const noexcept { return state_ == life::stopping || state_ == life::draining; }
  [[nodiscard]] bool has_ended() const noexcept { return state_ == life::ended; }
  /// Whether the actor has failed and has been neither resumed nor restarted yet. Such a failure counts as one
  /// suspension.
  [[nodiscard]] bool failure_is_open() const noexcept {
    return state_ == life::failed || state_ == life::restarting_after_failure;
  }
  /// How many `resume` signals its children must get before they take mail.
  [[nodiscard]] std::uint32_t suspensions() const noexcept {
    return suspensions_.value() + (failure_is_open() ? 1U : 0U);
  }

  /// Called in the first turn of the process.
  void set_id(pid id) noexcept { id_ = id; }
  /// Executes one row of the table in life_state.hpp and returns the action of that row.
  [[nodiscard]] life_action change(life_event event);
  /// An `ensure` has fired: the actor ends, whatever its state.
  void set_broken() noexcept;

  void suspend();
  void end_suspensions(std::uint32_t how_many);
  /// The restart that is ordered now will end one suspension more.
  void add_suspension_of_restart() { suspensions_of_restart_.raise(); }
  /// Ends the suspensions that were waiting for the restart, and returns how many there were.
  [[nodiscard]] std::uint32_t end_suspensions_of_restart();

  /// A message of this actor waits in front of a full mailbox.
  void add_message_without_room();
  void remove_messages_without_room(std::uint32_t how_many);
  [[nodiscard]] bool waits_for_room() const noexcept { return !messages_without_room_.is_zero(); }

  void set_slow_path(slow_path why, bool on) noexcept;

 private:
  inline void publish() noexcept;  // in life_status.cpp, which has all its callers
  void publish_change(bool takes, const body_type& wanted) noexcept;

  const actor_class* class_;
  pid id_{};
  guarded_counter suspensions_;
  guarded_counter suspensions_of_restart_;
  guarded_counter messages_without_room_;
  life state_ = life::unborn;
  std::uint8_t slow_paths_ = 0;
  bool published_takes_mail_ = true;  // what the flag of a new slot says
};

}  // namespace coppice::detail
