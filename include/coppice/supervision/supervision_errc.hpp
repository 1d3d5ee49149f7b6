#pragma once
#include <coppice/base/error.hpp>

namespace coppice {

/// Why a supervisor refuses to start or to delete a child. Other codes of supervisors are in `errc`.
enum class supervision_errc : unsigned char {
  already_started,  ///< there is a running child of that id
  already_present,  ///< there is a child of that id, which does not run
  running,          ///< the child runs, so it can't be started or deleted
  restarting,       ///< the child is about to be restarted
};

/// The code as a word, for example `"already_started"`.
[[nodiscard]] constexpr std::string_view to_string(supervision_errc code) noexcept {
  switch (code) {
    case supervision_errc::already_started: return "already_started";
    case supervision_errc::already_present: return "already_present";
    case supervision_errc::running: return "running";
    case supervision_errc::restarting: return "restarting";
  }
  return "unknown";
}

template <>
struct error_category<supervision_errc> {
  static constexpr std::string_view name = "supervision";
  static constexpr supervision_errc last = supervision_errc::restarting;
};

}  // namespace coppice
