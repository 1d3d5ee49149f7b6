#pragma once
// A small database of numbers: a log with checksums, and snapshots by rename. It can be built with the usual mistakes.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <coppice/base/flat_map.hpp>
#include <coppice/env/disk.hpp>

namespace coppice::sim {

/// What a careless author leaves out.
struct mistakes {
  bool no_sync_of_snapshot = false;   ///< a snapshot is renamed before its contents are synced
  bool no_sync_of_directory = false;  ///< after the rename of a snapshot
  bool no_sync_of_new_log = false;    ///< of the directory, after the log was created
  bool no_checksums = false;          ///< a torn record is taken for a record
  bool no_sync_of_cut = false;        ///< new records are written behind a torn one whose removal is not synced
  bool tries_sync_again = false;      ///< after a failed sync
};

class journal {
 public:
  journal(disk& files, mistakes made) : files_{files}, made_{made} {}

  [[nodiscard]] const std::vector<std::uint64_t>& numbers() const noexcept { return numbers_; }

  /// Reads what the last program has left.
  [[nodiscard]] result<void> open() {
    if (auto read = read_snapshot(); !read) return read;
    auto log = files_.open("/log", {.append = true, .create = true});
    if (!log) return std::unexpected{log.error()};
    log_ = *std::move(log);
    if (!made_.no_sync_of_new_log)
      if (auto synced = files_.sync_directory("/"); !synced) return synced;
    return read_log();
  }

  /// They are safe when it returns.
  [[nodiscard]] result<void> add(const std::vector<std::uint64_t>& more) {
    for (const std::uint64_t number : more) {
      const record r = made(numbers_.size(), number);
      if (auto written = log_->append(std::as_bytes(std::span{&r, 1})); !written) return written;
      numbers_.push_back(number);
    }
    return sync(*log_);
  }

  /// Writes all numbers to a new file, which replaces the last snapshot, and empties the log.
  [[nodiscard]] result<void> take_snapshot() {
    auto opened = files_.open("/snapshot.new", {.write = true, .create = true});
    if (!opened) return std::unexpected{opened.error()};
    std::vector<record> all;
    for (std::size_t i = 0; i < numbers_.size(); ++i) all.push_back(made(i, numbers_[i]));
    all.push_back(made(all.size(), end_mark));
    if (auto cut = (*opened)->truncate(0); !cut) return cut;
    if (auto written = (*opened)->write(0, std::as_bytes(std::span{all})); !written) return written;
    if (!made_.no_sync_of_snapshot)
      if (auto synced = sync(**opened); !synced) return synced;
    if (auto renamed = files_.rename("/snapshot.new", "/snapshot"); !renamed) return renamed;
    if (!made_.no_sync_of_directory)
      if (auto synced = files_.sync_directory("/"); !synced) return synced;
    if (auto cut = log_->truncate(0); !cut) return cut;
    return sync(*log_);
  }

 private:
  /// A sector holds a whole number of records, so that old ones can follow new ones when only some sectors are written.
  struct alignas(32) record {
    std::uint64_t index = 0;
    std::uint64_t number = 0;
    std::uint64_t checksum = 0;
  };
  static constexpr std::uint64_t end_mark = ~std::uint64_t{0};

  [[nodiscard]] static record made(std::uint64_t index, std::uint64_t number) noexcept {
    return {index, number, mix(mix(index + 1) ^ number) + 1};
  }
  [[nodiscard]] bool valid(const record& r) const noexcept {
    return made_.no_checksums || r.checksum == made(r.index, r.number).checksum;
  }
  [[nodiscard]] result<void> sync(file& f) {
    auto synced = f.sync();
    while (!synced && made_.tries_sync_again && synced.error().text().find("lost power") == std::string_view::npos)
      synced = f.sync();
    return synced;
  }
  [[nodiscard]] static result<std::vector<record>> records_of(file& f) {
    const auto size = f.size();
    if (!size) return std::unexpected{size.error()};
    std::vector<record> all(*size / sizeof(record));
    const auto got = f.read(0, std::as_writable_bytes(std::span{all}));
    if (!got) return std::unexpected{got.error()};
    return all;
  }

  [[nodiscard]] result<void> read_snapshot() {
    const auto opened = files_.open("/snapshot", {});
    if (!opened && opened.error().code() == disk_errc::not_found) return {};
    if (!opened) return std::unexpected{opened.error()};
    const auto all = records_of(**opened);
    if (!all) return std::unexpected{all.error()};
    for (const record& r : *all) {
      if (!valid(r) || r.index != numbers_.size()) break;
      if (r.number == end_mark) return {};
      numbers_.push_back(r.number);
    }
    return fail(errc::invalid, "the snapshot is damaged");
  }

  [[nodiscard]] result<void> read_log() {
    const auto all = records_of(*log_);
    if (!all) return std::unexpected{all.error()};
    std::size_t good = 0;
    for (const record& r : *all) {
      if (!valid(r) || r.index > numbers_.size()) break;
      ++good;
      if (r.index == numbers_.size()) numbers_.push_back(r.number);
    }
    const auto size = log_->size();
    if (!size) return std::unexpected{size.error()};
    if (*size == good * sizeof(record)) return {};
    if (auto cut = log_->truncate(good * sizeof(record)); !cut) return cut;
    return made_.no_sync_of_cut ? result<void>{} : sync(*log_);
  }

  disk& files_;
  mistakes made_;
  std::unique_ptr<file> log_;
  std::vector<std::uint64_t> numbers_;
};

}  // namespace coppice::sim
