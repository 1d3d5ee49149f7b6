#pragma once
/// All of Coppice's core in one include.
#include <coppice/base/error.hpp>
#include <coppice/behaviour/server.hpp>
#include <coppice/runtime/runtime.hpp>
#include <coppice/sim/explore.hpp>
#include <coppice/supervision/dynamic_supervisor.hpp>
#include <coppice/supervision/partition_supervisor.hpp>
#include <coppice/supervision/supervisor.hpp>
#include <coppice/supervision/tree.hpp>
