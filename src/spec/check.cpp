// The faults for which a supervisor refuses its children.
#include <span>
#include <unordered_set>

#include <coppice/spec/child_spec.hpp>

namespace coppice {

std::string spec_fault::to_string() const {
  if (path.empty()) return text;
  std::string joined;
  for (const std::string& id : path) joined += (joined.empty() ? "" : "/") + id;
  return "child '" + joined + "': " + text;
}

result<void> to_result(const std::vector<spec_fault>& faults) {
  if (faults.empty()) return {};
  std::string text = faults.size() == 1 ? std::string{} : std::to_string(faults.size()) + " faults: ";
  for (std::size_t i = 0; i < faults.size(); ++i) text += (i == 0 ? "" : "; ") + faults[i].to_string();
  return fail(faults.front().code, std::move(text));
}

namespace {

/// Collects the faults of one child.
class child_check {
 public:
  /// `place`: its position among the children of its supervisor, from 0.
  child_check(const child_spec& spec, std::size_t place, const std::vector<std::string>& above,
              std::vector<spec_fault>& into)
      : spec_{spec}, place_{place}, above_{above}, into_{into} {}

  void run(auto_shutdown when) {
    if (spec_.id.empty()) refuse(errc::invalid, "it has no id; give it one with .with({.id = \"...\"})");
    if (!spec_.start) refuse(errc::invalid, "start is empty; make the spec with child<T>(...)");
    restarts(when);
    if (spec_.type > child_type::actor)
      refuse(errc::invalid, "type is none of the child types worker, supervisor and actor");
    times();
    if (spec_.start && spec_.start.kind() == detail::recipe::kind::function) start_function();
    waits();
    if (!spec_.mailbox) return;
    if (const auto sensible = spec_.mailbox->check(); !sensible)
      refuse(errc::invalid, std::string{sensible.error().text()});
  }

 private:
  void refuse(errc code, std::string text) {
    std::vector<std::string> path = above_;
    path.push_back(spec_.id.empty() ? "number " + std::to_string(place_ + 1) : spec_.id);
    into_.push_back({std::move(path), code, std::move(text)});
  }

  void restarts(auto_shutdown when) {
    if (spec_.restart > restart::temporary)
      refuse(errc::invalid, "restart is none of the restart types permanent, transient and temporary");
    if (!spec_.significant) return;
    if (when == auto_shutdown::never)
      refuse(errc::bad_combination,
             "significant needs a supervisor with auto_shutdown any_significant or all_significant");
    if (spec_.restart == restart::permanent)
      refuse(errc::bad_combination,
             "significant and restart::permanent: the child would never stay down; make it transient or temporary");
  }

  void times() {
    if (spec_.shutdown && spec_.shutdown->time().count() < 0)
      refuse(errc::invalid, "shutdown is negative: " + to_string(*spec_.shutdown));
    if (spec_.start_within.count() <= 0)
      refuse(errc::invalid, "start_within is " + to_string(spec_.start_within) + "; it must be more than 0");
  }

  void start_function() {
    if (spec_.start_within != forever)
      refuse(errc::bad_combination, "start_within and a start function: the function must limit its own time");
    if (!spec_.name.empty())
      refuse(errc::bad_combination, "name and a start function: the function must register the name itself");
    if (spec_.mailbox)
      refuse(errc::bad_combination, "mailbox and a start function: the function must give it to the process itself");
  }

  void waits() {
    if (!spec_.backoff) {
      if (spec_.retry_first_start)
        refuse(errc::bad_combination,
               "retry_first_start needs a backoff, which says how long to wait before each retry");
      return;
    }
    if (spec_.restart == restart::temporary)
      refuse(errc::bad_combination,
             "backoff and restart::temporary: the child is never restarted; set the field backoff of the spec to "
             "std::nullopt");
    if (const auto sensible = spec_.backoff->check(); !sensible)
      refuse(errc::invalid, std::string{sensible.error().text()});
  }

  const child_spec& spec_;
  std::size_t place_;
  const std::vector<std::string>& above_;
  std::vector<spec_fault>& into_;
};

std::vector<spec_fault> collect(std::span<const child_spec> specs, auto_shutdown when,
                                const std::vector<std::string>& path) {
  std::vector<spec_fault> faults;
  std::unordered_set<std::string_view> ids;
  for (std::size_t place = 0; place < specs.size(); ++place) {
    const child_spec& spec = specs[place];
    child_check{spec, place, path, faults}.run(when);
    if (specs.size() > 1 && !spec.id.empty() && !ids.insert(spec.id).second)
      faults.push_back(
          {path, errc::duplicate_id,
           "two children have the id '" + spec.id + "'; give one of them another id with .with({.id = \"...\"})"});
    if (!spec.start || spec.type != child_type::supervisor) continue;
    std::vector<std::string> below = path;
    below.push_back(spec.id);
    spec.start.how().find_faults(below, faults);
  }
  return faults;
}

}  // namespace

std::vector<spec_fault> find_faults(const std::vector<child_spec>& specs, auto_shutdown when,
                                    const std::vector<std::string>& path) {
  return collect(specs, when, path);
}

result<void> check(const child_spec& spec, auto_shutdown when) { return to_result(collect({&spec, 1}, when, {})); }
result<void> check(const std::vector<child_spec>& specs, auto_shutdown when) {
  return to_result(find_faults(specs, when));
}

}  // namespace coppice
