#include <coppice/runtime/wait_info.hpp>

namespace coppice {

std::string_view to_string(wait_kind kind) noexcept {
  switch (kind) {
    case wait_kind::none: return "none";
    case wait_kind::mail: return "mail";
    case wait_kind::message: return "message";
    case wait_kind::answer: return "answer";
    case wait_kind::time: return "time";
    case wait_kind::blocking: return "blocking";
    case wait_kind::lane: return "lane";
    case wait_kind::operation: return "operation";
    case wait_kind::promise: return "promise";
    case wait_kind::start: return "start";
    case wait_kind::end: return "end";
    case wait_kind::job: return "job";
    case wait_kind::freeze: return "freeze";
    case wait_kind::turn: return "turn";
    case wait_kind::room: return "room";
    case wait_kind::decision: return "decision";
    case wait_kind::children: return "children";
  }
  return "unknown";
}

namespace {

std::string list(const std::vector<std::string_view>& types) {
  std::string out;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (i != 0) out += i + 1 == types.size() ? " or " : ", ";
    out += types[i];
  }
  return out;
}

/// `text`, followed by the process if there is one.
std::string with(std::string_view text, pid whom) {
  std::string out{text};
  if (whom) out.append(" of ").append(to_string(whom));
  return out;
}

std::string named(std::string_view text, const std::string& name) {
  std::string out{text};
  if (!name.empty()) out.append(" ").append(name);
  return out;
}

}  // namespace

std::string to_string(const wait_info& wait) {
  switch (wait.kind) {
    case wait_kind::none: return "nothing";
    case wait_kind::mail: return "the next message";
    case wait_kind::message: return "a message of type " + list(wait.types);
    case wait_kind::answer:
      return (wait.whom ? "an answer from " + to_string(wait.whom) : std::string{"an answer"}) +
             (wait.types.empty() ? "" : " to " + list(wait.types));
    case wait_kind::time: return "its sleep to end";
    case wait_kind::blocking: return named("blocking work", wait.what);
    case wait_kind::lane: return named("work in the lane", wait.what);
    case wait_kind::operation: return named("the operation", wait.what);
    case wait_kind::promise: return named("a promise of type", list(wait.types));
    case wait_kind::start: return with("the start", wait.whom);
    case wait_kind::end: return wait.whom ? with("the end", wait.whom) : "the end of another process";
    case wait_kind::job: return with("the result of a job", wait.whom);
    case wait_kind::freeze: return with("the freeze", wait.whom);
    case wait_kind::turn: return "its next turn";
    case wait_kind::room: return "room in the full mailbox of another process";
    case wait_kind::decision: return "its parent to decide about a failure";
    case wait_kind::children: return "its children to end";
  }
  return "unknown";
}

}  // namespace coppice
