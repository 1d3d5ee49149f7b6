#pragma once
/// After which ends a child is restarted.
#include <cstdint>
#include <string_view>

#include <coppice/runtime/exit_reason.hpp>

namespace coppice {

enum class restart : std::uint8_t {
  permanent,  ///< always
  transient,  ///< after an abnormal end: neither `normal` nor `shutdown`
  temporary,  ///< never; the supervisor forgets the child when it ends
};
[[nodiscard]] std::string_view to_string(restart r) noexcept;

enum class after_exit : std::uint8_t {
  restart,  ///< start the child again
  keep,     ///< leave the child down and keep its spec
  forget,   ///< remove the child
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
