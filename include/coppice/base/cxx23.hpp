#pragma once
/// The parts of C++23 that both g++ 12 and clang 19 (on libstdc++ 12) have. Others are refused by the tidy test.
#if __cplusplus < 202100L
#error "Coppice needs C++23: compile with -std=c++23"
#endif
#include <expected>    // std::expected, std::unexpected (without the monadic members)
#include <functional>  // std::move_only_function
#include <utility>     // std::to_underlying, std::unreachable
