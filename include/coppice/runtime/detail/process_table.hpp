#pragma once
/// The table of processes: one slot each, at an address that never changes while the runtime lives.
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include <coppice/runtime/detail/slot.hpp>

namespace coppice::detail {

/// Thread safety: any thread.
class process_table {
 public:
  /// `observed`: the bits of `is_observed` that all slots have. Throws `std::bad_alloc`.
  process_table(node_id node, std::uint32_t processes, std::uint8_t observed = 0);
  ~process_table();
  process_table(const process_table&) = delete;
  process_table& operator=(const process_table&) = delete;

  [[nodiscard]] node_id node() const noexcept { return node_; }
  /// Whether `who` names a slot of this table. Its process may be alive, have ended, or never have existed.
  [[nodiscard]] bool covers(pid who) const noexcept { return who.node() == node_ && who.index() < size_; }
  /// The same, if signals may be sent on the fast path: not if they carry trace ids.
  [[nodiscard]] bool on_fast_path(pid who) const noexcept {
    return who.node() == node_ && who.index() < fast_path_size_;
  }
  [[nodiscard]] bool has_trace_ids() const noexcept { return fast_path_size_ == 0; }
  [[nodiscard]] slot& operator[](std::uint32_t index) noexcept { return slots_[index]; }
  [[nodiscard]] const slot& operator[](std::uint32_t index) const noexcept { return slots_[index]; }
  [[nodiscard]] std::uint32_t index_of(const slot& p) const noexcept { return static_cast<std::uint32_t>(&p - slots_); }
  [[nodiscard]] pid pid_of(const slot& p) const noexcept { return pid::from_parts(node_, index_of(p), p.serial()); }
  [[nodiscard]] bool alive(pid who) const noexcept;
  /// True: the process has ended, and all linked and monitoring processes were notified. False: it is alive, or this is
  /// not certain yet.
  [[nodiscard]] bool gone(pid who) const noexcept;
  /// The process that spawned `p`; nobody when it was spawned from outside.
  [[nodiscard]] pid parent_of(const slot& p) const noexcept;
  /// Whether `who` spawned `p` linked, even if the link was removed later.
  [[nodiscard]] bool is_parent(const slot& p, pid who) const noexcept {
    return p.is(slot::born_linked) && is_spawner(p, who);
  }
  /// Whether `who` is the parent of `p` and `p` is still linked to it.
  [[nodiscard]] bool is_linked_parent(const slot& p, pid who) const noexcept {
    return p.is(slot::parent_linked) && is_spawner(p, who);
  }

  /// Only slots 1 to `used() - 1` can have a process or have had one.
  [[nodiscard]] std::uint32_t used() const noexcept;
  /// Calls `visit(slot&)` for every slot that has a process.
  template <class Visit>
  void for_each_process(Visit&& visit) {
    for (std::uint32_t i = 1, end = used(); i < end; ++i)
      if (slots_[i].is(slot::has_process)) visit(slots_[i]);
  }

  /// The index of a slot without a process; 0: the table is full.
  [[nodiscard]] std::uint32_t take();
  /// Takes up to `most` slots at once; returns their number.
  [[nodiscard]] std::size_t take_some(std::uint32_t* into, std::size_t most);
  void give_back(const std::uint32_t* from, std::size_t n) noexcept;
  /// A small table has no slots to spare for the reserves of the workers.
  [[nodiscard]] bool is_small() const noexcept { return size_ < (1U << 16U); }

 private:
  [[nodiscard]] bool is_spawner(const slot& p, pid who) const noexcept {
    return who.node() == node_ && who.index() == p.parent_index && who.serial() == p.parent_serial;
  }

  void prepare(std::uint32_t first, std::uint32_t count) noexcept;

  const node_id node_;
  const std::uint32_t size_;
  const std::uint32_t fast_path_size_;
  const std::uint8_t observed_;
  slot* const slots_;
  std::atomic<std::uint32_t> used_{1};
  std::mutex free_mutex_;
  std::vector<std::uint32_t> free_;
};

}  // namespace coppice::detail
