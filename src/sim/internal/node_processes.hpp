#pragma once
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include <coppice/sim/os_program.hpp>
#include <coppice/sim/world.hpp>

namespace coppice::sim {

/// The programs that run on one node, from its start to its crash.
class node_processes final : public os_processes, public std::enable_shared_from_this<node_processes> {
 public:
  /// Both live as long as the node.
  node_processes(world& w, const node_clock& clocks,
                 const std::map<std::string, os_program_maker, std::less<>>& installed);
  ~node_processes() override;
  node_processes(const node_processes&) = delete;
  node_processes& operator=(const node_processes&) = delete;

  result<std::unique_ptr<os_process>> spawn(const os_command& command, os_process_events events) override;

  // -- for the world
  void begin(node_id on) noexcept { node_ = on; }
  /// The node has crashed: all programs are gone, nothing is reported.
  void retire();
  /// The number of things that could happen next, now.
  [[nodiscard]] std::size_t choices() const noexcept;
  void do_one(std::size_t pick);
  /// When the next program wants to go on, by the clock of the node.
  [[nodiscard]] std::optional<time_point> next() const;
  void advance(time_point now);

 private:
  class self_of;
  class handle;
  struct process;
  using process_ref = std::shared_ptr<process>;

  process& add(const os_command& command, std::unique_ptr<os_program> program, std::uint64_t leader);
  void deliver_to_program(process& p);
  void report(process& leader);
  void end(process& p, const os_exit& how);
  void forget(std::uint64_t id);
  static void drop_events(process& p);
  void erase_if_over(std::uint64_t id);
  void note(std::string_view what, const process& about, std::uint64_t detail = 0, std::string_view text = {});

  world& world_;
  const node_clock& clocks_;
  const std::map<std::string, os_program_maker, std::less<>>& installed_;
  node_id node_;
  bool retired_ = false;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, process_ref> processes_;
  struct timer {
    std::uint64_t of;
    std::function<void()> what;
  };
  std::multimap<time_point, timer> timers_;
};

}  // namespace coppice::sim
