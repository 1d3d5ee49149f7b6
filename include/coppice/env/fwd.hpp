#pragma once
/// Forward declarations of what `coppice/env` defines.

namespace coppice {

class blocking_pool;
class clock;
class environment;
class environment_wrapper;
class fault_plan;
class os_signals;
class random_source;
class threads;

}  // namespace coppice
