#include "internal/plan.hpp"

#include <algorithm>
#include <map>

namespace coppice::detail {

std::string in_quotes(std::string_view name) { return '"' + std::string{name} + '"'; }

namespace {

using places = std::map<std::string_view, std::size_t>;  // from the name of an application to its place in the list

std::string number(std::size_t i) { return "number " + std::to_string(i + 1); }

std::string list_of(const places& known) {
  std::string text;
  for (const auto& [name, place] : known) text += (text.empty() ? "" : ", ") + in_quotes(name);
  return text;
}

/// The faults of one application by itself.
void look_at(const application_options& app, std::vector<std::string>& wrong) {
  const std::string who = "application " + in_quotes(app.name);
  const supervisor_spec unchanged;
  if (app.restart > restart::temporary) wrong.push_back(who + ": restart is not a valid restart type");
  if (!app.root) {
    const supervisor_spec own{
        .strategy = app.strategy, .limit = app.limit, .auto_shutdown = app.auto_shutdown, .children = app.supervise};
    for (const spec_fault& f : find_faults(own)) wrong.push_back(who + ": " + f.to_string());
    return;
  }
  if (!app.supervise.empty())
    wrong.push_back(who + " has a list of children (.supervise) and a supervisor of its own (.root): leave one out, " +
                    "or put the children into the supervisor");
  if (app.strategy != unchanged.strategy || app.limit != unchanged.limit ||
      app.auto_shutdown != unchanged.auto_shutdown)
    wrong.push_back(who +
                    " has settings for a supervisor (.strategy, .limit, .auto_shutdown) and a supervisor of its " +
                    "own (.root): put them into that supervisor");
  const std::vector<spec_fault> faults = find_faults(std::vector<child_spec>{*app.root});
  for (const spec_fault& f : faults) wrong.push_back(who + ", .root: " + f.to_string());
  if (faults.empty() && app.root->type != child_type::supervisor)
    wrong.push_back(who + ", .root: child '" + app.root->id + "' is not a supervisor; put it into .supervise");
}

/// The places of the applications by name. A missing name and a name given twice are faults.
places look_at_names(const std::vector<application>& all, std::vector<std::string>& wrong) {
  places known;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& name = all[i].options().name;
    if (name.empty()) {
      wrong.push_back("application " + number(i) + " has no name: give it one with .name");
      continue;
    }
    const auto [there, added] = known.emplace(name, i);
    if (!added)
      wrong.push_back("two applications have the name " + in_quotes(name) + ": " + number(there->second) + " and " +
                      number(i));
  }
  return known;
}

void look_at_dependencies(const std::vector<application>& all, const places& known, std::vector<std::string>& wrong) {
  for (const application& a : all)
    for (const std::string& needed : a.options().depends_on)
      if (!known.contains(needed))
        wrong.push_back("application " + in_quotes(a.options().name) + " depends on " + in_quotes(needed) +
                        ", and no application has that name; there are: " + list_of(known));
}

/// Walks the unplaced applications until one repeats: that is the dependency cycle.
std::string cycle(const std::vector<application>& all, const places& known, const std::vector<bool>& placed) {
  std::vector<std::size_t> path;
  auto at = static_cast<std::size_t>(std::ranges::find(placed, false) - placed.begin());
  while (std::ranges::find(path, at) == path.end()) {
    path.push_back(at);
    const auto& needs = all[at].options().depends_on;
    at = known.at(*std::ranges::find_if(needs, [&](const std::string& n) { return !placed[known.at(n)]; }));
  }
  path.erase(path.begin(), std::ranges::find(path, at));
  path.push_back(at);
  std::string text;
  for (const std::size_t each : path) text += (text.empty() ? "" : " -> ") + in_quotes(all[each].options().name);
  return text;
}

bool can_start(const application_options& app, const places& known, const std::vector<bool>& placed) {
  return std::ranges::all_of(app.depends_on, [&](const std::string& needed) { return placed[known.at(needed)]; });
}

/// Places the applications: each behind those it depends on, otherwise in the order given.
result<std::vector<std::size_t>> in_order(const std::vector<application>& all, const places& known) {
  std::vector<std::size_t> order;
  std::vector<bool> placed(all.size());
  while (order.size() < all.size()) {
    std::size_t next = 0;
    while (next < all.size() && (placed[next] || !can_start(all[next].options(), known, placed))) ++next;
    if (next == all.size())
      return fail(errc::invalid, "applications depend on each other in a cycle: " + cycle(all, known, placed));
    placed[next] = true;
    order.push_back(next);
  }
  return order;
}

std::unexpected<error> refuse(const std::vector<std::string>& wrong) {
  std::string text;
  for (const std::string& each : wrong) text += (text.empty() ? "" : "; ") + each;
  return fail(errc::invalid, std::move(text));
}

}  // namespace

result<std::vector<planned>> plan(const std::vector<application>& all) {
  if (all.empty()) return fail(errc::invalid, "there is no application to run");
  std::vector<std::string> wrong;
  const places known = look_at_names(all, wrong);
  for (const application& a : all) look_at(a.options(), wrong);
  look_at_dependencies(all, known, wrong);
  if (!wrong.empty()) return refuse(wrong);
  const auto order = in_order(all, known);
  if (!order) return std::unexpected{order.error()};
  std::vector<std::size_t> place(all.size());
  for (std::size_t i = 0; i < order->size(); ++i) place[(*order)[i]] = i;
  std::vector<planned> out;
  for (const std::size_t i : *order) {
    planned& p = out.emplace_back(planned{.app = all[i].options(), .needs = {}});
    for (const std::string& needed : p.app.depends_on) p.needs.push_back(place[known.at(needed)]);
  }
  return out;
}

}  // namespace coppice::detail
