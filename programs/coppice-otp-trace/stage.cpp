#include "stage.hpp"

#include "worker.hpp"

namespace otp_trace {
namespace {

coppice::child_options settings(const std::string& id, const options& how) {
  coppice::child_options all{.id = id};
  all.restart = how.restart;
  all.shutdown = how.shutdown;
  all.significant = how.significant;
  return all;
}

}  // namespace

stage::stage(const scenario& s) {
  for (const declaration& d : s.declarations) {
    children_[d.parent].push_back(d.id);
    if (d.what == declaration::kind::supervisor) {
      supervisors_.insert_or_assign(d.id, d);
    } else {
      give_spec(d.id, d.how);
    }
  }
}

coppice::child_spec stage::child(const std::string& id) {
  const auto found = supervisors_.find(id);
  if (found != supervisors_.end())
    return coppice::child<otp_trace::tree>(this, id).with(settings(id, found->second.how));
  return coppice::child<worker>(this, id).with(settings(id, workers_.at(id).how));
}

coppice::supervisor_spec stage::tree(const std::string& id) {
  const declaration& d = supervisors_.at(id);
  coppice::supervisor_spec spec;
  spec.strategy = d.strategy;
  spec.limit = d.limit;
  spec.auto_shutdown = d.how.auto_shutdown;
  for (const std::string& name : children_[id]) spec.children.push_back(child(name));
  return spec;
}

void stage::give_spec(const std::string& worker, const options& how) {
  workers_.insert_or_assign(worker, worker_role{how});
}

start stage::next_start(const std::string& worker) {
  worker_role& role = workers_.at(worker);
  const auto& starts = role.how.starts;
  return role.started < starts.size() ? starts[role.started++] : start::ok;
}

std::vector<std::string> stage::supervisors_below(const std::string& id) const {
  std::vector<std::string> found;
  const auto all = children_.find(id);
  if (all == children_.end()) return found;
  for (const std::string& name : all->second)
    if (supervisors_.contains(name)) found.push_back(name);
  return found;
}

coppice::pid stage::last(const std::string& id) const {
  const auto found = pids_.find(id);
  return found == pids_.end() ? coppice::pid{} : found->second;
}

std::string word_for(const coppice::exit_reason& reason) {
  using kind = coppice::exit_reason::kind;
  if (reason.what() == kind::shutdown) return reason.text().empty() ? "shutdown" : "shutdown+";
  if (reason.what() == kind::error) return reason.text() == "crash" ? "crash" : "other";
  return std::string{to_string(reason.what())};
}

coppice::exit_reason reason_for(std::string_view word) {
  if (word == "normal") return coppice::exit_reason::normal();
  if (word == "shutdown") return coppice::exit_reason::shutdown();
  if (word == "shutdown+") return coppice::exit_reason::shutdown("done");
  return coppice::exit_reason::error(std::string{word});
}

}  // namespace otp_trace
