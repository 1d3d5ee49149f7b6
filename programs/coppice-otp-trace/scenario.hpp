#pragma once
/// A parsed scenario; conformance/README.md describes the language.
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <coppice/supervision/supervisor_spec.hpp>

namespace otp_trace {

/// What a start of a worker does.
enum class start { ok, fail, ignore };

/// The `key=value` words of a line. A key that is not given has the default of OTP.
struct options {
  std::optional<coppice::restart> restart;
  std::optional<coppice::shutdown> shutdown;
  std::optional<bool> significant;
  coppice::auto_shutdown auto_shutdown = coppice::auto_shutdown::never;
  bool trap = true;
  bool stubborn = false;
  std::vector<start> starts;
};

struct declaration {
  enum class kind { supervisor, worker };
  kind what = kind::worker;
  std::string id;
  std::string parent;  ///< "-" for the root
  options how;
  coppice::strategy strategy = coppice::strategy::one_for_one;  // this and the next: for supervisors only
  coppice::restart_limit limit{};
};

struct step {
  enum class kind {
    crash,
    exit,
    kill,
    start_child,
    terminate_child,
    restart_child,
    delete_child,
    count,
    burst,
    wait,
    stop
  };
  kind what = kind::stop;
  std::string text;            ///< as the trace shows it
  std::string target;          ///< a worker, or the supervisor that is called
  std::string child;           ///< of a call
  std::string reason;          ///< of an exit: normal, shutdown, shutdown+
  std::optional<options> how;  ///< of a start_child: the new spec, if one is given
  std::vector<step> parts;     ///< of a burst
  std::chrono::milliseconds time{0};
};

struct scenario {
  std::string root;
  std::vector<declaration> declarations;
  std::vector<step> steps;
};

/// An invalid scenario: `what()` says why.
class bad_scenario : public std::runtime_error {
 public:
  bad_scenario(int line, const std::string& why) : std::runtime_error{why}, line_{line} {}
  [[nodiscard]] int line() const noexcept { return line_; }

 private:
  int line_;
};

/// Throws `bad_scenario`.
[[nodiscard]] scenario parse(std::string_view text);

}  // namespace otp_trace
