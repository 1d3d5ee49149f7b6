#pragma once
/// Kinds of mailboxes: the same as for all processes.
#include <coppice/runtime/mailbox.hpp>

namespace coppice::actor {

using coppice::mailbox;
using coppice::when_full;

}  // namespace coppice::actor
