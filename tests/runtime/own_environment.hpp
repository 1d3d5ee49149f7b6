#pragma once
// This machine's environment, for tests that change a part of it.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <coppice/env/environment_wrapper.hpp>

namespace coppice {

class own_threads : public threads {
 public:
  std::unique_ptr<thread_handle> start(std::string name, std::optional<unsigned> core,
                                       std::move_only_function<void()> body) override {
    return real_.start(std::move(name), core, std::move(body));
  }
  unsigned cores() const noexcept override { return real_.cores(); }
  void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::optional<time_point> until) override {
    real_.wait(word, expected, until);
  }
  void wake_one(std::atomic<std::uint32_t>& word) noexcept override { real_.wake_one(word); }
  void wake_all(std::atomic<std::uint32_t>& word) noexcept override { real_.wake_all(word); }
  void barrier_everywhere() noexcept override { real_.barrier_everywhere(); }

 private:
  coppice::threads& real_ = *real_environment()->threads();
};

class own_clock : public clock {
 public:
  time_point now() noexcept override { return real_.now(); }
  time_point coarse_now() noexcept override { return real_.coarse_now(); }
  boot_time boot() noexcept override { return real_.boot(); }
  wall_time wall() noexcept override { return real_.wall(); }

 private:
  coppice::clock& real_ = real_environment()->clock();
};

/// The parts are the test's, and live as long as it says.
class own_environment : public environment_wrapper {
 public:
  struct parts {
    coppice::clock* time = nullptr;
    coppice::threads* workers = nullptr;
    std::function<std::unique_ptr<blocking_pool>()> make_pool{};
  };
  explicit own_environment(parts changed) : environment_wrapper{real_environment()}, changed_{changed} {}
  coppice::clock& clock() noexcept override {
    return changed_.time != nullptr ? *changed_.time : environment_wrapper::clock();
  }
  coppice::threads* threads() noexcept override {
    return changed_.workers != nullptr ? changed_.workers : environment_wrapper::threads();
  }
  std::unique_ptr<blocking_pool> make_blocking_pool(unsigned most_threads) override {
    return changed_.make_pool ? changed_.make_pool() : environment_wrapper::make_blocking_pool(most_threads);
  }

 private:
  parts changed_;
};

}  // namespace coppice
