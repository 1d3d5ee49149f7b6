#pragma once
/// The state that a future and its copies share. It belongs to one process, and only that process touches it.
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <coppice/runtime/detail/kernel.hpp>

namespace coppice::detail {

/// Data that a library above this one stores with a future: actors store their continuations.
struct future_notes {
  future_notes() = default;
  future_notes(const future_notes&) = delete;
  future_notes& operator=(const future_notes&) = delete;
  virtual ~future_notes() = default;
};

struct future_base {
  future_base() = default;
  future_base(const future_base&) = delete;
  future_base& operator=(const future_base&) = delete;
  virtual ~future_base() = default;
  /// The first completion counts; later ones have no effect. `answer` is a `result<R>`.
  virtual void complete(kernel& k, void* answer) = 0;
  virtual void fail(kernel& k, error why) = 0;

  std::uint64_t number = 0;             // the answer carries it
  const message_type* reply = nullptr;  // the type of the answer
  pid owner{};                          // the process that waits
  pid target{};                         // the process that answers; nobody: a promise
  bool remote = false;                  // it is of another node
  bool done = false;
  timer_ref due{};
  std::unique_ptr<future_notes> notes;
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

/// Numbers the future and registers it with its process, which must be the running one.
void add_future(self& owner, const std::shared_ptr<future_base>& f);
void remove_future(self& owner, std::uint64_t number);
/// Throws `std::logic_error` unless the future belongs to `me`.
void must_be_owner(const future_base& f, pid me);
[[noreturn]] void throw_future_awaited_before();
/// For processes that are not actors: takes the answer to a pending future of the running process. False: the answer
/// belongs to none.
[[nodiscard]] bool take_answer_of_future(turn& t, envelope& e);

}  // namespace coppice::detail
