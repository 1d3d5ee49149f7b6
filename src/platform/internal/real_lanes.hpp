#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include <coppice/env/lanes.hpp>

namespace coppice {

class lane_thread;

/// Lanes with one thread each. A thread keeps the state of its lane alive and needs nothing else, so that a thread that
/// is stuck in a job can be left behind.
class real_lanes final : public lanes {
 public:
  std::unique_ptr<lane> open(std::string name) override;
  std::vector<lane_status> status() const override;

 private:
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<lane_thread>> opened_;  // the entries of ended lanes are removed by the next `open`
};

}  // namespace coppice
