#pragma once
/// Forward declarations of what `coppice/spec` defines.

namespace coppice {

class child_start;
struct backoff;
struct child_info;
struct child_spec;
struct restart_limit;
class restart_window;
class shutdown;

}  // namespace coppice
