#pragma once
/// The children of one supervisor, in the order of their start, and all that is done with them.
#include <unordered_map>

#include <coppice/supervision/supervisor.hpp>

#include "child_keeper.hpp"

namespace coppice::detail {

class supervised_children final : public child_keeper {
 public:
  explicit supervised_children(supervisor_spec spec);

  /// In order; when one fails, those before it are stopped again, and the error names it.
  [[nodiscard]] task<result<void>> start_all(self& me);
  [[nodiscard]] task<void> stop_all(self& me);

  [[nodiscard]] task<void> child_exited(self& me, exited x);
  [[nodiscard]] task<void> retry(self& me, std::uint64_t child);
  [[nodiscard]] task<void> wait_is_over(self& me, timer_ref wait);

  [[nodiscard]] task<result<pid>> start_child(self& me, child_spec spec);
  [[nodiscard]] task<result<void>> terminate_child(self& me, std::string id);
  [[nodiscard]] task<result<pid>> restart_child(self& me, std::string id);
  [[nodiscard]] task<result<void>> retry_now(self& me, std::string id);
  [[nodiscard]] result<void> delete_child(const std::string& id);
  [[nodiscard]] result<void> upgrade(supervisor_spec spec);
  [[nodiscard]] child_counts count(self& me) const;
  [[nodiscard]] std::vector<child_info> list(self& me) const;
  /// Error: `not_found`.
  [[nodiscard]] result<supervised*> find(std::string_view id);

 private:
  supervised& add(child_spec spec);
  void forget(supervised& c);
  void clear_gaps();
  /// A temporary one that was ignored is forgotten.
  [[nodiscard]] std::optional<error> has_started(self& me, supervised& c, start_result started, time_point now);
  [[nodiscard]] task<void> stop_range(self& me, std::size_t first, const supervised* on_behalf_of);
  [[nodiscard]] task<void> start_range(self& me, std::size_t first);
  [[nodiscard]] task<void> restart_now(self& me, supervised& c);
  void shut_down_if_done(self& me, const std::string& id, const exit_reason& why);
  [[nodiscard]] std::size_t first_to_restart(const supervised& c) const noexcept;

  coppice::strategy strategy_;
  coppice::auto_shutdown auto_shutdown_;
  std::vector<std::unique_ptr<supervised>> order_;  // with gaps where children were forgotten
  std::size_t gaps_ = 0;
  std::uint64_t numbers_ = 0;
  // Made when somebody first asks for a child by its id.
  std::unordered_map<std::string_view, supervised*> by_id_;
  bool indexed_ = false;
};

}  // namespace coppice::detail
