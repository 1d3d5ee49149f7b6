#pragma once
/// Forward declarations of what `coppice/sim` defines.

namespace coppice::sim {

class network;
class node;
class node_clock;
class node_disk;
class node_lanes;
class os_program;
class os_program_self;
class trace;
class world;
struct clock_quality;
struct disk_quality;
struct exploration;
struct lane_quality;
struct network_quality;
struct trace_event;

}  // namespace coppice::sim
