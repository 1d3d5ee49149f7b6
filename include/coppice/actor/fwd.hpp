#pragma once
/// Forward declarations of what `coppice/actor` defines.

namespace coppice {

class behaviour;
class context;
struct actor;
struct mailbox;
struct restarting;
struct started;
struct stopped;
struct stopping;
struct terminated;

template <class A>
class actor_ref;
template <class T>
class future;
template <class A>
class props;

}  // namespace coppice
