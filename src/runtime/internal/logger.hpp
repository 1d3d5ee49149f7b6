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
  logger(const logger&) = delete;
  logger& operator=(const logger&) = delete;
  /// Writes how many records were left out since the last ones.
  ~logger();

  /// Fields without a value are left out, and long texts are cut.
  void write(log_part part, log_level level, std::string_view text, std::span<const log_field> fields);
  /// Writes the first records of a flood in each second. The number of those left out is written before the next
  /// record of that flood.
  void write_throttled(const flood& about, log_part part, log_level level, std::string_view text,
                       std::span<const log_field> fields);

 private:
  static constexpr std::uint64_t most_in_a_second = 10;
  /// The records of a second that were left out.
  struct summary {
    std::string subject;
    log_part part{};
    log_level level = log_level::info;
    std::uint64_t left_out = 0;
  };
  static constexpr std::chrono::seconds window{1};
  static constexpr std::uint64_t places = 8;  // where the throttle of a flood may be
  struct throttle {
    std::uint64_t flood = 0;  // the hash of its subject, key and level
    time_point since{std::chrono::nanoseconds::min() / 2};
    std::uint64_t reports = 0;
    summary last;
  };
  [[nodiscard]] throttle& throttle_for(std::uint64_t& flood, time_point at);
  [[nodiscard]] static summary take_summary(throttle& t);
  void write(const summary& s);

  std::shared_ptr<log_sink> sink_;
  clock& clock_;
  std::mutex mutex_;
  std::array<throttle, 64> floods_;
};

}  // namespace coppice::detail
