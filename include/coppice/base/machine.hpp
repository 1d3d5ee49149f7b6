#pragma once
/// The machine that Coppice runs on. Other machines are refused here, and nowhere else.
#if !defined(__linux__) || !defined(__x86_64__)
#error "Coppice runs on Linux on x86-64: cpu_pause, the frame layout in task.hpp and src/platform assume it"
#endif

namespace coppice::detail {

/// Tells the processor that this thread waits in a loop for another one.
inline void cpu_pause() noexcept { __builtin_ia32_pause(); }

}  // namespace coppice::detail
