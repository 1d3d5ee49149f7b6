// What nearly every C++ file includes anyway: the measure for one_server.cpp.
#include <functional>
#include <string>
#include <vector>

int main() {}
