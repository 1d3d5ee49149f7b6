#pragma once
/// The parts of the kernel, in the order they are made. Each has its own header and source.
#include <coppice/runtime/detail/event_stream.hpp>
#include <coppice/runtime/detail/scheduler.hpp>
#include <coppice/runtime/metrics.hpp>

#include "blocking_work.hpp"
#include "exits.hpp"
#include "fast_lane.hpp"
#include "freezer.hpp"
#include "futures.hpp"
#include "lifecycle.hpp"
#include "links.hpp"
#include "logger.hpp"
#include "mailbox_policies.hpp"
#include "name_table.hpp"
#include "observer.hpp"
#include "orphans.hpp"
#include "process_runner.hpp"
#include "process_timers.hpp"
#include "remote.hpp"
#include "timers.hpp"
#include "trace_ids.hpp"

namespace coppice::detail {

struct kernel_parts {
  explicit kernel_parts(kernel& k, std::size_t wheels)
      : log{k.options().log, k.env().clock()},
        events{k},
        names{k.table()},
        trace_ids{k},
        policies{k},
        remote{k},
        links{k, remote},
        exits{k, links},
        fast_lane{k, links, exits},
        freezer{k},
        futures{k},
        orphans{k},
        blocking{k},
        lifecycle{k},
        timers{k, wheels, lifecycle.started()},
        process_timers{k},
        observer{k},
        metrics{[this] { return observer.metrics(); }},
        runner{k, *this} {}

  logger log;
  event_stream events;
  name_table names;
  detail::trace_ids trace_ids;
  mailbox_policies policies;
  detail::remote remote;
  detail::links links;
  detail::exits exits;
  detail::fast_lane fast_lane;
  detail::freezer freezer;
  detail::futures futures;
  detail::orphans orphans;
  blocking_work blocking;
  detail::lifecycle lifecycle;
  detail::timers timers;
  detail::process_timers process_timers;
  detail::observer observer;
  coppice::metrics metrics;
  process_runner runner;
};

}  // namespace coppice::detail
