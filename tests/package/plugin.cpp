// A shared library that carries the runtime inside.
#include <coppice/coppice.hpp>

namespace {
coppice::task<> doubles(coppice::self& me, int* n) {
  co_await me.yield();
  *n *= 2;
}
}  // namespace

extern "C" int twice(int n) {
  coppice::runtime runtime;
  runtime.run(doubles, &n);
  return n;
}
