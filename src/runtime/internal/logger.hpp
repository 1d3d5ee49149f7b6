#pragma once
/// Writes log records, and thins out those that come in floods.
#include <array>
#include <mutex>
#include <span>

#include <coppice/runtime/detail/kernel.hpp>

namespace coppice::detail {

/// Thread safety: any thread.
class logger {
 public:
  logger(std::shared_ptr<log_sink> sink, clock& c) noexcept : sink_{std::move(sink)}, clock_{c} {}

  void write(log_level level, std::string_view text, std::span<const log_field> fields);
  /// Writes the first records of a kind in each second. The number of those left out is written before the next record
  /// of that kind.
  void write_throttled(flood what, log_level level, std::string_view text, std::span<const log_field> fields);

 private:
  static constexpr std::uint64_t most_in_a_second = 10;
  struct throttle {
    std::mutex mutex;
    time_point since{};
    std::uint64_t reports = 0;
  };
  std::shared_ptr<log_sink> sink_;
  clock& clock_;
  std::array<throttle, 3> floods_;
};

}  // namespace coppice::detail
