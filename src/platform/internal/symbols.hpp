#pragma once
#include <string>

namespace coppice {

/// The name of the function at that address, without its parameters and without the parts that compilers add to the
/// functions of coroutines. Empty: not known. Reads the symbol table of the program or library at its first use.
/// Thread safety: any thread.
[[nodiscard]] std::string function_name_at(const void* code);

}  // namespace coppice
