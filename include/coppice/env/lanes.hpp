#pragma once
/// Lanes: named threads that run jobs one after another, for libraries that want to be used from one thread (the writer
/// of an SQLite database, a libpq connection) and for files with one writer.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <coppice/base/cxx23.hpp>
#include <coppice/env/clock.hpp>

namespace coppice {

struct lane_status {
  std::string name;
  std::size_t queued = 0;                     ///< jobs that have not begun
  std::optional<time_point> running_since{};  ///< when the job in progress began; nothing: none is
  std::uint64_t done = 0;                     ///< jobs that have ended
  std::uint64_t dropped = 0;                  ///< jobs that were queued when the lane was closed
  bool closed = false;
};

/// The destructor closes the lane; like `close`, it does not wait.
/// Thread safety: any thread, also a job of this lane.
class lane {
 public:
  virtual ~lane() = default;
  /// Appends a job to the queue. The thread of the lane calls `work` and then `done`, before it begins the next job.
  /// Neither may throw. Do the work in `work` and publish its result in `done`: in a simulation, `done` is called when
  /// the virtual duration of the work has passed, and not at all if the machine crashes before that.
  ///
  /// False: the lane is closed, and the job was destroyed instead.
  [[nodiscard]] virtual bool submit(std::move_only_function<void()> work, std::move_only_function<void()> done) = 0;
  [[nodiscard]] bool submit(std::move_only_function<void()> work) {
    return submit(std::move(work), [] {});
  }
  /// Refuses further jobs, and destroys the queued ones, in their order, before it returns: whoever waits for one of
  /// them is notified by its destruction. A job in progress is not interrupted: it goes on, and its `done` is called.
  /// The thread ends afterwards; if the job never returns, the thread is left behind and delays nobody.
  virtual void close() noexcept = 0;
  /// Waits until the lane is closed and no job is in progress. False: that was not so at `until`. Not from a job of
  /// this lane; in a simulation not from processes, since it runs the world.
  [[nodiscard]] virtual bool wait_closed(time_point until) = 0;
  [[nodiscard]] virtual lane_status status() const = 0;
};

/// Thread safety: any thread.
class lanes {
 public:
  virtual ~lanes() = default;
  /// Opens a lane with a thread of its own. The name is for people: debuggers show its first 15 characters, and two
  /// lanes may have the same. Throws `std::system_error` when no thread can be started.
  [[nodiscard]] virtual std::unique_ptr<lane> open(std::string name) = 0;
  /// All lanes that are open or have a job in progress, in the order in which they were opened. Closed lanes in this
  /// list are those whose last job still runs: a program that ends in a bounded time names them and leaves them behind.
  [[nodiscard]] virtual std::vector<lane_status> status() const = 0;
};

}  // namespace coppice
