// Loads plugin.cpp by dlopen. This program does not link Coppice: the plugin contains its own copy.
#include <dlfcn.h>

#include <cstdio>

int main() {
  void* plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    std::printf("%s\n", dlerror());
    return 1;
  }
  const auto twice = reinterpret_cast<int (*)(int)>(dlsym(plugin, "twice"));
  std::printf("twice 21 is %d\n", twice(21));
}
