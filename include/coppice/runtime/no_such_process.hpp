#pragma once
#include <stdexcept>

#include <coppice/runtime/pid.hpp>

namespace coppice {

/// A process that does not trap exits tried to link to a process that has ended.
class no_such_process : public std::runtime_error {
 public:
  explicit no_such_process(pid who) : std::runtime_error{"noproc: " + to_string(who) + " has ended"}, who_{who} {}
  [[nodiscard]] pid who() const noexcept { return who_; }

 private:
  pid who_;
};

}  // namespace coppice
