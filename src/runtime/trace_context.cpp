#include <array>

#include <coppice/runtime/trace_context.hpp>

#include "internal/trace_ids.hpp"

namespace coppice {

namespace {

constexpr std::string_view digits = "0123456789abcdef";

std::string hex(std::uint64_t value) {
  std::string out(16, '0');
  for (auto at = out.rbegin(); at != out.rend(); ++at, value >>= 4U) *at = digits[value & 15U];
  return out;
}

/// Only lower case is valid. Nothing: not a number.
std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  for (const char c : text) {
    const std::size_t digit = digits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    value = value << 4U | digit;
  }
  return value;
}

constinit thread_local trace_context of_this_thread{};

}  // namespace

std::string trace_context::id() const { return hex(id_high) + hex(id_low); }

std::string trace_context::span_id() const { return hex(span); }

std::string trace_context::traceparent() const { return "00-" + id() + "-" + span_id() + (sampled ? "-01" : "-00"); }

// version 2 digits, trace 32, span 16, flags 2, with dashes between. A later version may have more behind another dash.
std::optional<trace_context> trace_context::from(std::string_view text) {
  constexpr std::size_t length = 55;
  if (text.size() < length || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  const auto version = number(text.substr(0, 2));
  const auto high = number(text.substr(3, 16));
  const auto low = number(text.substr(19, 16));
  const auto span = number(text.substr(36, 16));
  const auto flags = number(text.substr(53, 2));
  if (!version || !high || !low || !span || !flags || *version == 0xff) return std::nullopt;
  if (text.size() > length && (*version == 0 || text[length] != '-')) return std::nullopt;
  const trace_context read{.id_high = *high, .id_low = *low, .span = *span, .parent = 0, .sampled = (*flags & 1U) != 0};
  if (!read || read.span == 0) return std::nullopt;
  return read;
}

trace_scope::trace_scope(const trace_context& as) noexcept : before_{std::exchange(of_this_thread, as)} {}
trace_scope::~trace_scope() { of_this_thread = before_; }

const trace_context& detail::trace_here() noexcept {
  const turn* t = turn_here();
  return t != nullptr ? t->trace : of_this_thread;
}

}  // namespace coppice
