#pragma once
/// Forward declarations of what `coppice/supervision` defines.

namespace coppice {

class dynamic_supervisor;
class job_supervisor;
class partitions;
class supervisor;
struct dynamic_supervisor_spec;
struct exit_record;
struct partition_options;
struct supervisor_spec;

}  // namespace coppice
