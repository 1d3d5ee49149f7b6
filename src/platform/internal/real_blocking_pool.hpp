#pragma once
#include <memory>

#include <coppice/env/environment.hpp>

namespace coppice {

[[nodiscard]] std::unique_ptr<blocking_pool> make_real_blocking_pool(unsigned most_threads);

}  // namespace coppice
