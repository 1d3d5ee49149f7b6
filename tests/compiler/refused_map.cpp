// A container built from a list inside an awaiting expression: does it compile at all?
#include <map>

#include "probe.hpp"

template <class T>
task<int> swallow(T) {
  co_return 1;
}
task<int> body() { co_return co_await swallow(std::map<std::string, std::string>{{text, text}}); }
