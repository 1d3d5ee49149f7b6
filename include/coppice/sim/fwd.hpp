#pragma once
/// Forward declarations of what `coppice/sim` defines.

namespace coppice::sim {

class network;
class node;
class world;
struct exploration;
struct network_quality;

}  // namespace coppice::sim
