#pragma once
/// Which deaths of a child are answered by a restart: a table, and nothing else.
#include <cstdint>
#include <string_view>

#include <coppice/runtime/exit_reason.hpp>

namespace coppice {

enum class restart : std::uint8_t {
  permanent,  ///< always
  transient,  ///< when it ended abnormally: neither `normal` nor `shutdown`
  temporary,  ///< never; and with its end it is forgotten
};
[[nodiscard]] std::string_view to_string(restart r) noexcept;

enum class after_exit : std::uint8_t {
  restart,  ///< it is started again
  keep,     ///< it stays down, and its place is kept
  forget,   ///< it is gone
};

/// | restart   | normal | shutdown | abnormal |
/// |-----------|--------|----------|----------|
/// | permanent | restart | restart | restart  |
/// | transient | keep    | keep    | restart  |
/// | temporary | forget  | forget  | forget   |
[[nodiscard]] constexpr after_exit decide(restart how, bool abnormal) noexcept {
  switch (how) {
    case restart::permanent: return after_exit::restart;
    case restart::transient: return abnormal ? after_exit::restart : after_exit::keep;
    case restart::temporary: break;
  }
  return after_exit::forget;
}
[[nodiscard]] inline after_exit decide(restart how, const exit_reason& why) noexcept {
  return decide(how, why.abnormal());
}

}  // namespace coppice
