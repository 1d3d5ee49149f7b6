#include "internal/disk_image.hpp"

#include <algorithm>
#include <ranges>

namespace coppice::sim {

disk_image::disk_image() { inodes_[root].directory = true; }

// ---- paths

/// There is no current directory other than the root, and there are no symbolic links: `..` removes the part before it.
disk_image::outcome<disk_image::place> disk_image::resolve(const std::string& path) const {
  if (path.empty()) return std::unexpected{disk_errc::not_found};
  std::vector<file_number> parents;
  place at{.found = root};
  for (const auto part : std::views::split(path, '/')) {
    const std::string name{part.begin(), part.end()};
    if (name.empty() || name == ".") {
      at.wants_directory = true;
      continue;
    }
    if (at.found == 0) return std::unexpected{disk_errc::not_found};
    if (!is_directory(at.found)) return std::unexpected{disk_errc::not_a_directory};
    if (name == "..") {
      at = {.found = parents.empty() ? root : parents.back(), .wants_directory = true};
      if (!parents.empty()) parents.pop_back();
      continue;
    }
    const names& entries = inodes_.at(at.found).now;
    const auto entry = entries.find(name);
    parents.push_back(at.found);
    at = {.directory = at.found, .name = name, .found = entry != entries.end() ? entry->second : 0};
  }
  if (at.wants_directory && at.found != 0 && !is_directory(at.found))
    return std::unexpected{disk_errc::not_a_directory};
  return at;
}

disk_image::outcome<file_number> disk_image::existing_directory(const std::string& path) const {
  const auto at = resolve(path);
  if (!at) return std::unexpected{at.error()};
  if (at->found == 0) return std::unexpected{disk_errc::not_found};
  if (!is_directory(at->found)) return std::unexpected{disk_errc::not_a_directory};
  return at->found;
}

disk_image::outcome<void> disk_image::check_directory(const std::string& path) const {
  const auto found = existing_directory(path);
  if (!found) return std::unexpected{found.error()};
  return {};
}

bool disk_image::is_within(file_number inner, file_number outer) const {
  if (inner == outer) return true;
  const inode& from = inodes_.at(outer);
  return std::ranges::any_of(from.now, [&](const auto& entry) { return is_within(inner, entry.second); });
}

// ---- what a program may ask for

disk_image::outcome<file_number> disk_image::open(const std::string& path, const open_options& how) {
  const auto at = resolve(path);
  if (!at) return std::unexpected{at.error()};
  file_number number = at->found;
  if (number == 0) {
    if (!how.create) return std::unexpected{disk_errc::not_found};
    if (at->wants_directory) return std::unexpected{disk_errc::is_a_directory};
    number = add(false);
    perform({.changes = {{at->directory, at->name, number}}, .directories = {at->directory}});
  } else if (how.exclusive) {
    return std::unexpected{disk_errc::exists};
  } else if (is_directory(number)) {
    return std::unexpected{disk_errc::is_a_directory};
  }
  ++inodes_.at(number).handles;
  return number;
}

void disk_image::close(file_number number, const void* handle) {
  inode& file = inodes_.at(number);
  --file.handles;
  if (file.locked_by == handle) file.locked_by = nullptr;
}

bool disk_image::lock(file_number number, const void* handle) {
  inode& file = inodes_.at(number);
  if (file.locked_by == nullptr) file.locked_by = handle;
  return file.locked_by == handle;
}

disk_image::outcome<void> disk_image::check_replaced(const place& moved, const place& replaced) const {
  if (replaced.found == 0) {
    const bool fits = !replaced.wants_directory || is_directory(moved.found);
    return fits ? outcome<void>{} : std::unexpected{disk_errc::not_a_directory};
  }
  if (is_directory(moved.found) && !is_directory(replaced.found)) return std::unexpected{disk_errc::not_a_directory};
  if (!is_directory(moved.found) && is_directory(replaced.found)) return std::unexpected{disk_errc::is_a_directory};
  if (!inodes_.at(replaced.found).now.empty()) return std::unexpected{disk_errc::not_empty};
  return {};
}

disk_image::outcome<void> disk_image::rename(const std::string& from, const std::string& to) {
  const auto source = resolve(from);
  if (!source) return std::unexpected{source.error()};
  const auto target = resolve(to);
  if (!target) return std::unexpected{target.error()};
  if (source->found == 0) return std::unexpected{disk_errc::not_found};
  if (source->name.empty() || target->name.empty()) return std::unexpected{disk_errc::invalid};
  if (source->found == target->found) return {};
  if (is_within(target->directory, source->found)) return std::unexpected{disk_errc::invalid};
  if (auto fits = check_replaced(*source, *target); !fits) return fits;
  operation op{.changes = {{source->directory, source->name, 0}, {target->directory, target->name, source->found}},
               .directories = {source->directory, target->directory}};
  // The files that were moved out of a replaced directory must be in their new places before it disappears.
  if (target->found != 0 && is_directory(target->found)) op.directories.insert(target->found);
  perform(std::move(op));
  return {};
}

disk_image::outcome<std::vector<directory_entry>> disk_image::list(const std::string& path) const {
  const auto found = existing_directory(path);
  if (!found) return std::unexpected{found.error()};
  std::vector<directory_entry> all;
  for (const auto& [name, number] : inodes_.at(*found).now)
    all.push_back({name, is_directory(number) ? entry_kind::directory : entry_kind::file});
  return all;
}

disk_image::outcome<void> disk_image::remove(const std::string& path) {
  const auto at = resolve(path);
  if (!at) return std::unexpected{at.error()};
  if (at->found == 0) return std::unexpected{disk_errc::not_found};
  if (at->name.empty()) return std::unexpected{disk_errc::invalid};
  if (!inodes_.at(at->found).now.empty()) return std::unexpected{disk_errc::not_empty};
  operation op{.changes = {{at->directory, at->name, 0}}, .directories = {at->directory}};
  if (is_directory(at->found)) op.directories.insert(at->found);  // as in `rename`
  perform(std::move(op));
  return {};
}

disk_image::outcome<void> disk_image::make_directory(const std::string& path) {
  const auto at = resolve(path);
  if (!at) return std::unexpected{at.error()};
  if (at->found != 0) return std::unexpected{disk_errc::exists};
  const file_number number = add(true);
  perform({.changes = {{at->directory, at->name, number}}, .directories = {at->directory}, .made = number});
  return {};
}

std::uint64_t disk_image::used() const {
  std::uint64_t sum = 0;
  for (const auto& [number, each] : inodes_)
    for (const auto& [name, target] : each.now) sum += inodes_.at(target).contents.size();
  return sum;
}

// ---- what is durable

file_number disk_image::add(bool directory) {
  inodes_[++last_].directory = directory;
  return last_;
}

void disk_image::perform(operation op) {
  for (const link_change& each : op.changes) {
    names& entries = inodes_.at(each.directory).now;
    if (each.target != 0)
      entries[each.name] = each.target;
    else
      entries.erase(each.name);
  }
  pending_.push_back(std::move(op));
}

void disk_image::make_durable(const operation& op) {
  for (const link_change& each : op.changes) {
    names& entries = inodes_.at(each.directory).synced;
    if (each.target != 0)
      entries[each.name] = each.target;
    else
      entries.erase(each.name);
  }
}

/// Makes the pending operations on the directory durable, and all those that must have happened before them.
disk_image::outcome<void> disk_image::sync_directory(const std::string& path) {
  const auto found = existing_directory(path);
  if (!found) return std::unexpected{found.error()};
  std::set<file_number> concerned{*found};
  std::set<file_number> must_exist;
  std::vector<operation> needed;
  std::vector<operation> others;
  // Backwards in time. An operation on two directories may be durable only if both exist, so what created them is
  // needed too.
  for (operation& op : pending_ | std::views::reverse) {
    const bool exists = must_exist.contains(op.made);
    if (!exists && std::ranges::none_of(op.directories, [&](file_number d) { return concerned.contains(d); })) {
      others.push_back(std::move(op));
      continue;
    }
    concerned.insert(op.directories.begin(), op.directories.end());
    if (exists || op.directories.size() > 1) must_exist.insert(op.directories.begin(), op.directories.end());
    needed.push_back(std::move(op));
  }
  for (const operation& op : needed | std::views::reverse) make_durable(op);
  pending_.assign(std::move_iterator{others.rbegin()}, std::move_iterator{others.rend()});
  remove_unused();
  return {};
}

crash_count disk_image::crash(crash_kind kind, dice& by) {
  crash_count count;
  std::set<file_number> behind;  // directories that have lost an operation
  std::set<file_number> never_made;
  for (const operation& op : pending_) {
    const bool follows_lost = std::ranges::any_of(op.directories, [&](file_number d) {
      return behind.contains(d) || (op.directories.size() > 1 && never_made.contains(d));
    });
    const bool lost =
        follows_lost || kind == crash_kind::loses_all || (kind == crash_kind::loses_some && by.chance(0.3));
    ++(lost ? count.lost : count.kept);
    if (!lost) {
      make_durable(op);
      continue;
    }
    behind.insert(op.directories.begin(), op.directories.end());
    if (op.made != 0) never_made.insert(op.made);
  }
  pending_.clear();
  for (auto& [number, each] : inodes_) {
    each.now = each.synced;
    each.handles = 0;
    each.locked_by = nullptr;
  }
  remove_unused();
  for (auto& [number, each] : inodes_) each.contents.crash(kind, by, count);
  return count;
}

/// Forgets files and directories that have no name and no handle, now or after a crash.
void disk_image::remove_unused() {
  for (bool more = true; more;) {
    std::set<file_number> used{root};
    for (const auto& [number, each] : inodes_) {
      for (const auto& [name, target] : each.now) used.insert(target);
      for (const auto& [name, target] : each.synced) used.insert(target);
    }
    for (const operation& op : pending_) {
      used.insert(op.directories.begin(), op.directories.end());
      for (const link_change& each : op.changes) used.insert(each.target);
    }
    more = std::erase_if(inodes_, [&](const auto& entry) {
             return !used.contains(entry.first) && entry.second.handles == 0;
           }) != 0;
  }
}

}  // namespace coppice::sim
