#include <algorithm>
#include <cmath>
#include <limits>

#include <coppice/spec/backoff.hpp>
#include <coppice/spec/shutdown.hpp>

namespace coppice {

namespace {

/// The factor for `first`, at most `most`.
std::int64_t times_first(backoff_curve curve, unsigned failures, std::int64_t most) {
  switch (curve) {
    case backoff_curve::constant: return 1;
    case backoff_curve::linear: return std::min<std::int64_t>(failures, most);
    case backoff_curve::exponential: return failures > 62 ? most : std::min(std::int64_t{1} << (failures - 1), most);
    case backoff_curve::fibonacci: break;
  }
  std::int64_t before = 1;
  std::int64_t now = 1;
  for (unsigned i = 1; i < failures && now < most; ++i)
    before = std::exchange(now, now > most - before ? most : now + before);
  return std::min(now, most);
}

}  // namespace

std::chrono::nanoseconds backoff::wait_after(unsigned failures) const noexcept {
  if (failures == 0 || first.count() <= 0) return std::chrono::nanoseconds{0};
  const std::int64_t most = cap / first;  // limits the factor, so that the product does not overflow
  const std::int64_t times =
      times_first(curve, failures, most + (most < std::numeric_limits<std::int64_t>::max() ? 1 : 0));
  return times > most ? cap : first * times;
}

std::chrono::nanoseconds backoff::wait_after(unsigned failures, std::uint64_t random) const noexcept {
  const std::chrono::nanoseconds plain = wait_after(failures);
  const double share = static_cast<double>(random >> 11U) * 0x1.0p-53 * 2 - 1;  // from -1 to 1
  const double moved = static_cast<double>(plain.count()) * (1 + jitter * share);
  if (moved >= static_cast<double>(cap.count())) return cap;
  return std::chrono::nanoseconds{std::max(std::llround(moved), 0LL)};
}

result<void> backoff::check() const {
  if (curve > backoff_curve::fibonacci)
    return fail(errc::invalid, "backoff.curve is none of constant, linear, exponential and fibonacci");
  if (first.count() <= 0)
    return fail(errc::invalid, "backoff.first is " + coppice::to_string(first) + "; it must be more than 0");
  if (cap < first)
    return fail(errc::invalid, "backoff.cap is " + coppice::to_string(cap) + ", less than backoff.first (" +
                                   coppice::to_string(first) + ")");
  const bool a_share = jitter >= 0 && jitter <= 1;  // false for NaN
  if (!a_share) return fail(errc::invalid, "backoff.jitter must be between 0 and 1");
  if (reset_after.count() < 0) return fail(errc::invalid, "backoff.reset_after must not be negative");
  return {};
}

std::vector<std::chrono::nanoseconds> next_waits(const backoff& b, std::size_t how_many) {
  std::vector<std::chrono::nanoseconds> waits;
  waits.reserve(how_many);
  for (unsigned i = 1; i <= how_many; ++i) waits.push_back(b.wait_after(i));
  return waits;
}

std::string to_string(const backoff& b) {
  std::string text;
  for (const auto wait : next_waits(b)) text += (text.empty() ? "" : ", ") + to_string(wait);
  if (b.jitter > 0) text += ", each up to " + std::to_string(std::lround(b.jitter * 100)) + " % shorter or longer";
  return text;
}

}  // namespace coppice
