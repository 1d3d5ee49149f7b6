#pragma once
/// What the kernel asks of the thread it runs on, which may be one of its workers.
#include <coppice/runtime/detail/scheduler.hpp>

namespace coppice::detail {

/// Work stealing over threads of the environment.
[[nodiscard]] std::unique_ptr<scheduler> make_worker_scheduler(kernel& k, const runtime_options& options);

/// What the current thread is to the runtime `k`: the number of its worker, which chooses its wheel; 0 for others.
[[nodiscard]] std::size_t worker_number(const kernel& k) noexcept;
/// Puts a process into the queue of the current worker; false when the thread is no worker of `k`.
[[nodiscard]] bool push_here(kernel& k, slot& p, bool spawned);
/// A slot index from the current worker's reserve, or 0.
[[nodiscard]] std::uint32_t slot_from_here(kernel& k) noexcept;
[[nodiscard]] bool slot_to_here(kernel& k, std::uint32_t index) noexcept;
void count_spawned(kernel& k) noexcept;
void count_ended(kernel& k) noexcept;

}  // namespace coppice::detail
