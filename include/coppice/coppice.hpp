#pragma once
/// All of Coppice's core in one include, except for the simulation: that is <coppice/sim/explore.hpp>.
#include <coppice/actor/router.hpp>
#include <coppice/application/application.hpp>
#include <coppice/base/error.hpp>
#include <coppice/behaviour/agent.hpp>
#include <coppice/behaviour/async_stream.hpp>
#include <coppice/behaviour/event_bus.hpp>
#include <coppice/behaviour/jobs.hpp>
#include <coppice/behaviour/registry.hpp>
#include <coppice/behaviour/server.hpp>
#include <coppice/runtime/runtime.hpp>
#include <coppice/supervision/dynamic_supervisor.hpp>
#include <coppice/supervision/job_supervisor.hpp>
#include <coppice/supervision/partition_supervisor.hpp>
#include <coppice/supervision/supervisor.hpp>
#include <coppice/supervision/tree.hpp>
