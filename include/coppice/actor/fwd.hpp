#pragma once
/// Forward declarations of what `coppice/actor` defines.

namespace coppice::actor {

class behaviour;
class context;
struct any_actor;
struct restarting;
struct started;
struct stopped;
struct stopping;
struct terminated;

template <class A>
class actor_ref;
template <class A>
class props;

}  // namespace coppice::actor

namespace coppice::detail {

using namespace coppice::actor;  // for the insides of the library

}  // namespace coppice::detail
