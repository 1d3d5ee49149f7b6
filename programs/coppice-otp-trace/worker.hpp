#pragma once
#include "stage.hpp"

namespace otp_trace {

/// A worker of a scenario: it adds its starts and its end to the trace.
class worker {
 public:
  struct end {
    coppice::exit_reason with;
  };
  using protocol = coppice::protocol<end>;
  static constexpr bool traps_exits = false;  // `init` decides

  worker(stage* where, std::string id) : stage_{where}, id_{std::move(id)} {}

  coppice::init_result init(coppice::self& me);
  void handle(const end& m, coppice::self& me) { me.stop(m.with); }
  coppice::task<> terminate(const coppice::exit_reason& why, coppice::self& me);

 private:
  stage* stage_;
  std::string id_;
  bool stubborn_ = false;
};

/// A supervisor of a scenario.
struct tree {
  static coppice::supervisor_spec init(stage* where, const std::string& id) {
    where->event("init " + id);
    return where->tree(id);
  }
};

}  // namespace otp_trace
