#pragma once
/// Forward declarations of what `coppice/application` defines.

namespace coppice {

class application;
class applications;
class running_program;
struct application_info;
struct program_outcome;
struct run_options;

}  // namespace coppice
