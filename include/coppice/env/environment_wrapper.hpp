#pragma once
/// An environment that forwards everything to another one. Derive from it to replace one part, for example the random
/// numbers of a test.
///
///     class with_own_clock : public environment_wrapper {
///      public:
///       using environment_wrapper::environment_wrapper;
///       coppice::clock& clock() noexcept override { return clock_; }
///      private:
///       my_clock clock_;
///     };
///     runtime rt{std::make_shared<with_own_clock>(real_environment()), {}};
#include <memory>
#include <stdexcept>
#include <utility>

#include <coppice/env/environment.hpp>

namespace coppice {

/// Thread safety: as the wrapped environment; a part that replaces another one has to promise what that one does.
class environment_wrapper : public environment {
 public:
  /// Throws `std::invalid_argument` if `wrapped` is null.
  explicit environment_wrapper(std::shared_ptr<environment> wrapped) : wrapped_{std::move(wrapped)} {
    if (wrapped_ == nullptr) throw std::invalid_argument{"environment_wrapper: there is no environment to forward to"};
  }
  [[nodiscard]] coppice::clock& clock() noexcept override { return wrapped_->clock(); }
  [[nodiscard]] random_source& random() noexcept override { return wrapped_->random(); }
  [[nodiscard]] coppice::threads* threads() noexcept override { return wrapped_->threads(); }
  [[nodiscard]] std::unique_ptr<blocking_pool> make_blocking_pool(unsigned most_threads) override {
    return wrapped_->make_blocking_pool(most_threads);
  }
  [[nodiscard]] coppice::disk& disk() noexcept override { return wrapped_->disk(); }
  [[nodiscard]] coppice::lanes& lanes() noexcept override { return wrapped_->lanes(); }
  [[nodiscard]] fault_plan* faults() noexcept override { return wrapped_->faults(); }
  [[nodiscard]] coppice::os_signals& os_signals() noexcept override { return wrapped_->os_signals(); }
  [[nodiscard]] coppice::os_processes& os_processes() noexcept override { return wrapped_->os_processes(); }
  [[nodiscard]] std::string function_at(const void* code) override { return wrapped_->function_at(code); }
  [[nodiscard]] std::uint64_t new_node_number() noexcept override { return wrapped_->new_node_number(); }

 private:
  std::shared_ptr<environment> wrapped_;
};

}  // namespace coppice
