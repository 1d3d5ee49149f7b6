// Signals of the operating system, delivered to subscribers on a separate thread. The handler only counts and posts a
// semaphore; docs/decisions/0014 explains why.
#include "internal/os_signals.hpp"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace coppice {
namespace {

constexpr std::array kinds{os_signal::terminate, os_signal::interrupt, os_signal::hangup, os_signal::user1,
                           os_signal::user2};
static_assert(number_of(os_signal::terminate) == SIGTERM && number_of(os_signal::interrupt) == SIGINT &&
              number_of(os_signal::hangup) == SIGHUP && number_of(os_signal::user1) == SIGUSR1 &&
              number_of(os_signal::user2) == SIGUSR2);

constexpr std::size_t index_of(os_signal s) noexcept { return static_cast<std::size_t>(s); }

/// Everything that the handler touches. It is static because a handler gets only the number of the signal, and never
/// destroyed because a handler may still be running on some thread after the last subscriber has left.
struct handler_state {
  std::array<std::atomic<std::uint32_t>, kinds.size()> arrived{};
  std::atomic<pid_t> owner{0};
  sem_t wake{};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free);
constinit handler_state inbox;

extern "C" void coppice_on_signal(int number) {
  const int before = errno;
  if (::getpid() != inbox.owner.load(std::memory_order_relaxed)) {
    // A forked child that has not called exec yet: it has none of our threads, so nothing would handle the signal.
    (void)std::signal(number, SIG_DFL);
    (void)std::raise(number);
  } else {
    for (const os_signal s : kinds)
      if (number_of(s) == number) inbox.arrived[index_of(s)].fetch_add(1);
    ::sem_post(&inbox.wake);
  }
  errno = before;
}

bool is_ours(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == &coppice_on_signal;
}

/// Blocks all signals for the current thread, so that a thread started meanwhile begins with all signals blocked.
class all_blocked {
 public:
  all_blocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  all_blocked(const all_blocked&) = delete;
  all_blocked& operator=(const all_blocked&) = delete;
  ~all_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

class real_os_signals final : public os_signals {
 public:
  real_os_signals() { ::sem_init(&inbox.wake, 0, 0); }

  std::unique_ptr<os_signal_subscription> subscribe(std::vector<os_signal> which,
                                                    std::move_only_function<void(os_signal)> heard) override {
    const std::scoped_lock one_change{changing_};
    if (!teller_.joinable()) start_teller();
    std::unique_ptr<subscription> added;
    {
      const std::scoped_lock lock{telling_};
      subscribed_.reserve(subscribed_.size() + 1);  // so that `push_back` cannot fail
      added = std::make_unique<subscription>(*this, std::move(which), std::move(heard));
      subscribed_.push_back(added.get());
    }
    for (const os_signal s : kinds)
      if (added->wants(s) && ++users_[index_of(s)] == 1) install(s);
    ::sem_post(&inbox.wake);  // the delivering thread must unblock the added signals
    return added;
  }

 private:
  class subscription final : public os_signal_subscription {
   public:
    subscription(real_os_signals& from, std::vector<os_signal> which, std::move_only_function<void(os_signal)> heard)
        : from_{from}, which_{std::move(which)}, heard_{std::move(heard)} {}
    subscription(const subscription&) = delete;
    subscription& operator=(const subscription&) = delete;
    ~subscription() override { from_.remove(*this); }
    [[nodiscard]] bool wants(os_signal s) const { return std::ranges::find(which_, s) != which_.end(); }
    void tell(os_signal s) {
      if (wants(s)) heard_(s);
    }

   private:
    real_os_signals& from_;
    std::vector<os_signal> which_;
    std::move_only_function<void(os_signal)> heard_;
  };

  void remove(subscription& gone) {
    const std::scoped_lock one_change{changing_};
    bool last = false;
    {
      const std::scoped_lock lock{telling_};
      last = std::erase(subscribed_, &gone) == 1 && subscribed_.empty();
    }
    // The delivering thread stops before the handlers are removed: it may be the only one that has a signal unblocked,
    // and must not receive the signal without a handler.
    if (last) stop_teller();
    for (const os_signal s : kinds)
      if (gone.wants(s) && --users_[index_of(s)] == 0) put_back(s);
    if (!last) ::sem_post(&inbox.wake);
  }

  /// A program that was started with a signal ignored (nohup, background jobs of a script) keeps ignoring it.
  void install(os_signal s) {
    struct sigaction before{};
    ::sigaction(number_of(s), nullptr, &before);
    if ((before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_IGN) return;
    struct sigaction ours{};
    ours.sa_handler = &coppice_on_signal;
    ours.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    ::sigaction(number_of(s), &ours, nullptr);
    before_[index_of(s)] = before;
  }

  /// Restores the previous handler, unless other code has installed its own handler meanwhile.
  void put_back(os_signal s) {
    const auto before = std::exchange(before_[index_of(s)], std::nullopt);
    struct sigaction now{};
    ::sigaction(number_of(s), nullptr, &now);
    if (before && is_ours(now)) ::sigaction(number_of(s), &*before, nullptr);
  }

  void start_teller() {
    for (auto& count : inbox.arrived) count = 0;
    inbox.owner = ::getpid();
    stopping_ = false;
    const all_blocked for_the_new_thread;
    teller_ = std::thread{[this] { tell_all(); }};
  }

  void stop_teller() {
    stopping_ = true;
    ::sem_post(&inbox.wake);
    teller_.join();
  }

  void tell_all() {
    ::pthread_setname_np(::pthread_self(), "coppice-signals");
    while (!stopping_) {
      {
        const std::scoped_lock lock{telling_};
        accept_what_is_wanted();
        for (const os_signal s : kinds)
          for (auto count = inbox.arrived[index_of(s)].exchange(0); count > 0; --count)
            for (subscription* each : subscribed_) each->tell(s);
      }
      while (::sem_wait(&inbox.wake) != 0 && errno == EINTR) {}
    }
  }

  /// This thread receives the subscribed signals even if all other threads block them, and never any other signal.
  void accept_what_is_wanted() {
    sigset_t refused;
    sigfillset(&refused);
    for (const os_signal s : kinds)
      if (std::ranges::any_of(subscribed_, [&](const subscription* each) { return each->wants(s); }))
        sigdelset(&refused, number_of(s));
    ::pthread_sigmask(SIG_SETMASK, &refused, nullptr);
  }

  std::mutex changing_;  // held while a subscription is added or removed
  std::array<int, kinds.size()> users_{};
  std::array<std::optional<struct sigaction>, kinds.size()> before_;  // what our handler has replaced
  std::thread teller_;

  std::mutex telling_;  // held while subscribers are called
  std::vector<subscription*> subscribed_;
  std::atomic<bool> stopping_{false};
};

}  // namespace

os_signals& program_signals() {
  // Never destroyed: subscriptions may still exist when the program ends.
  static auto* const only = new real_os_signals;
  return *only;
}

}  // namespace coppice
