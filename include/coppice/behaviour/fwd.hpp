#pragma once
/// Forward declarations of what `coppice/behaviour` defines.

namespace coppice {

struct handler_removed;
struct stream_options;

template <class State>
class agent;
template <class Event>
class event_bus;
template <class T>
class job;

}  // namespace coppice
