// Runs the probe named by the first argument. Ends with 0 if its result was right, with 3 if it was wrong, with 4 if
// there is no such probe; without an argument it lists them.
#include <cstdio>

#include "probe.hpp"

int main(int argc, char** argv) {
  for (const probe* p = probe::first; p != nullptr; p = p->next) {
    if (argc < 2) {
      std::printf("%.*s\n", static_cast<int>(p->name.size()), p->name.data());
    } else if (p->name == argv[1]) {
      return p->run() ? 0 : 3;
    }
  }
  return argc < 2 ? 0 : 4;
}
