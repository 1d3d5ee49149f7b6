// Must not compile: without any co_await or co_return the body is not a coroutine, and returns nothing.
#include <coppice/coppice.hpp>

coppice::task<> forgetful(coppice::self& me) { me.label("forgetful"); }
