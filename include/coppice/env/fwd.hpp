#pragma once
/// Forward declarations of what `coppice/env` defines.

namespace coppice {

class blocking_pool;
class clock;
class disk;
class environment;
class environment_wrapper;
class fault_plan;
class file;
class lane;
class lanes;
class os_process;
class os_processes;
class os_signals;
class random_source;
class threads;
struct os_command;
struct os_exit;
struct os_process_events;
enum class disk_errc : unsigned char;

}  // namespace coppice
