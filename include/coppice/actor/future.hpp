#pragma once
/// A value that an actor waits for: the reply to a call, the result of blocking work, or the end of a process. See
/// `context::call`, `context::blocking`, `context::stop_future` and `context::reenter_after`.
#include <coppice/actor/detail/mail.hpp>
#include <coppice/actor/fwd.hpp>

namespace coppice {
namespace detail {

struct future_base {
  struct continuation {
    std::uint64_t generation;  // of the instance that made it
    held_call call;            // the call that the continuation may answer
    const message_type* message;
    std::function<void(context&)> run;
  };
  future_base() = default;
  future_base(const future_base&) = delete;
  future_base& operator=(const future_base&) = delete;
  virtual ~future_base() = default;
  /// The first completion counts; later ones have no effect. `answer` is a `result<R>`.
  virtual void complete(kernel& k, void* answer) = 0;
  virtual void fail(kernel& k, error why) = 0;

  std::uint64_t number = 0;
  const message_type* reply = nullptr;  // the type of the answer
  pid target{};
  bool remote = false;
  bool done = false;
  timer_ref due{};
  std::vector<continuation> continuations;
};

template <class R>
struct future_state final : future_base {
  using pipe = std::function<void(kernel&, const result<R>&)>;
  void complete(kernel& k, void* answer) override { finish(k, std::move(*static_cast<result<R>*>(answer))); }
  void fail(kernel& k, error why) override { finish(k, std::unexpected{std::move(why)}); }
  void finish(kernel& k, result<R> got) {
    if (done) return;
    done = true;
    value = std::move(got);
    for (const pipe& p : std::exchange(pipes, {})) p(k, *value);
  }
  std::optional<result<R>> value;
  std::vector<pipe> pipes;
};

template <class R>
void send_result(kernel& k, pid to, const result<R>& value) {
  if (value)
    k.send(to, signal::message, make_mail<R>(plain<R>, *value));
  else
    k.send(to, signal::message, make_mail<error>(plain<error>, value.error()));
}

}  // namespace detail

/// Belongs to the actor that asked; only its handlers may use it. Copies share one state. It is completed once: by the
/// first answer, by an error (`noproc` if there is no such process, `exited`, `no_reply`, `noconnection`), or by its
/// timeout. Later answers are dropped.
template <class R>
class future {
 public:
  explicit future(std::shared_ptr<detail::future_state<R>> state) noexcept : state_{std::move(state)} {}
  /// Null until the future is done.
  [[nodiscard]] const result<R>* get() const noexcept { return state_->value ? &*state_->value : nullptr; }
  /// Sends the value, or the `error` in its place, to `to` as soon as the future is done, even if the actor is
  /// restarted before that.
  void pipe_to(pid to) const
    requires(!std::is_void_v<R>)
  {
    if (state_->done)
      detail::send_result(detail::kernel_here(), to, *state_->value);
    else
      state_->pipes.push_back([to](detail::kernel& k, const result<R>& value) { detail::send_result(k, to, value); });
  }
  template <class A>
  void pipe_to(actor::actor_ref<A> to) const {
    pipe_to(to.id());
  }

  /// For the library.
  [[nodiscard]] const std::shared_ptr<detail::future_state<R>>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<detail::future_state<R>> state_;
};

}  // namespace coppice
