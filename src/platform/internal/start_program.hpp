#pragma once
#include <sys/types.h>

#include <coppice/env/os_processes.hpp>

#include "file_descriptor.hpp"

namespace coppice {

/// A child of this program, and our ends of its pipes, which do not block. Who has it must wait for its end.
struct started_program {
  pid_t id = 0;
  file_descriptor process;  // a pidfd: readable when the process has ended
  file_descriptor input;    // the three are empty where the stream is not a pipe
  file_descriptor output;
  file_descriptor error;
};

/// Starts a program, as `os_processes::spawn` describes it. With `killed_with_us`, the system kills it when the calling
/// thread ends, not only when the program does.
[[nodiscard]] result<started_program> start_program(const os_command& command);

}  // namespace coppice
