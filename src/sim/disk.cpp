// The simulated disk as a program sees it: calls that fail, take time and notice a loss of power. What the files and
// directories contain, and what a crash leaves of them, is in disk_image.cpp and file_image.cpp.
#include <algorithm>

#include <coppice/sim/disk.hpp>
#include <coppice/sim/world.hpp>

#include "internal/disk_image.hpp"

namespace coppice::sim {

namespace {

std::string_view sentence(disk_errc code) noexcept {
  switch (code) {
    case disk_errc::not_found: return "no such file or directory";
    case disk_errc::exists: return "the name is in use";
    case disk_errc::denied: return "the file was not opened for this";
    case disk_errc::no_space: return "the disk is full";
    case disk_errc::input_output: return "input/output error";
    case disk_errc::not_a_directory: return "not a directory";
    case disk_errc::is_a_directory: return "is a directory";
    case disk_errc::not_empty: return "the directory is not empty";
    case disk_errc::invalid: return "invalid argument";
    case disk_errc::too_many_open:
    case disk_errc::other: break;
  }
  return "error";
}

std::unexpected<error> failed(std::string_view what, const std::string& path, disk_errc code,
                              const std::string& detail = {}) {
  std::string text{what};
  text.append(" ").append(path).append(": ").append(detail).append(sentence(code)).append(" (simulated)");
  return fail(code, std::move(text));
}

template <class T>
result<T> translated(std::string_view what, const std::string& path, const disk_image::outcome<T>& from) {
  if (!from) return failed(what, path, from.error());
  if constexpr (std::is_void_v<T>)
    return {};
  else
    return *from;
}

}  // namespace

/// Which share of `disk_quality` makes a call fail.
enum class call_kind : std::uint8_t { reading, writing, syncing, naming };

/// One start of a program on the node: its view of the disk, and the way of all its calls.
class mounted_disk final : public coppice::disk {
 public:
  explicit mounted_disk(std::shared_ptr<node_disk> of) : disk_{std::move(of)}, mount_{disk_->mounts_} {}

  [[nodiscard]] bool dead() const noexcept { return mount_ != disk_->mounts_ || disk_->lost_power_; }
  [[nodiscard]] disk_image& image() noexcept { return *disk_->image_; }
  [[nodiscard]] dice& chance() noexcept { return disk_->world_.chance(); }
  [[nodiscard]] std::uint64_t room() const {
    const std::uint64_t used = disk_->image_->used();
    return used < disk_->quality.capacity ? disk_->quality.capacity - used : 0;
  }

  /// Makes one call: `effect` is what it does, `fault` what is left of it when an error is injected.
  template <class T, class Effect, class Fault>
  result<T> call(call_kind kind, std::string_view what, const std::string& path, Effect effect, Fault fault) {
    if (dead()) return without_power(what, path);
    node_disk& d = *disk_;
    ++d.calls_;
    d.time_ += chance().between(d.quality.call_min, d.quality.call_max);
    if (d.calls_ == d.crash_at_ || chance().chance(d.quality.power_failures)) {
      const bool has_effect = chance().chance(0.5);
      d.world_.add_to_hash("power lost", d.node_.value(), d.calls_, has_effect ? 1 : 0);
      tell(what, path, has_effect ? "power lost, after its effect" : "power lost, without effect");
      if (has_effect) (void)effect();
      d.lost_power_ = true;
      return without_power(what, path);
    }
    if (chance().chance(share_of(kind))) {
      d.world_.add_to_hash("disk error", d.node_.value(), d.calls_);
      tell(what, path, "injected error");
      fault();
      return failed(what, path, disk_errc::input_output);
    }
    result<T> answer = effect();
    d.world_.add_to_hash("disk " + std::string{what}, d.node_.value(), d.calls_, answer ? 1 : 0);
    if (answer)
      tell(what, path);
    else
      tell(answer.error().text());
    return answer;
  }
  void tell(std::string_view what, std::string_view path = {}, std::string_view fault = {}) {
    if (!disk_->world_.traced()) return;
    std::string line{"disk: "};
    line.append(what);
    if (!path.empty()) line.append(" ").append(path);
    if (!fault.empty()) line.append(": ").append(fault);
    disk_->world_.tell(disk_->node_, std::move(line));
  }
  template <class T, class Effect>
  result<T> call(call_kind kind, std::string_view what, const std::string& path, Effect effect) {
    return call<T>(kind, what, path, std::move(effect), [] {});
  }

  result<std::unique_ptr<file>> open(const std::string& path, open_options how) override;
  result<void> rename(const std::string& from, const std::string& to) override {
    const std::string both = from + " to " + to;
    return call<void>(call_kind::naming, "rename", both,
                      [&] { return translated("rename", both, image().rename(from, to)); });
  }
  result<std::vector<directory_entry>> list(const std::string& path) override {
    return call<std::vector<directory_entry>>(call_kind::reading, "list", path,
                                              [&] { return translated("list", path, image().list(path)); });
  }
  result<void> remove(const std::string& path) override {
    return call<void>(call_kind::naming, "remove", path,
                      [&] { return translated("remove", path, image().remove(path)); });
  }
  result<void> make_directory(const std::string& path) override {
    return call<void>(call_kind::naming, "make directory", path,
                      [&] { return translated("make directory", path, image().make_directory(path)); });
  }
  result<void> sync_directory(const std::string& path) override {
    return call<void>(call_kind::syncing, "sync directory", path,
                      [&] { return translated("sync directory", path, image().sync_directory(path)); });
  }
  result<std::uint64_t> free_space(const std::string& path) override {
    return call<std::uint64_t>(call_kind::naming, "free space of", path, [&]() -> result<std::uint64_t> {
      if (const auto there = image().check_directory(path); !there) return failed("free space of", path, there.error());
      return room();
    });
  }

 private:
  [[nodiscard]] static std::unexpected<error> without_power(std::string_view what, const std::string& path) {
    return fail(disk_errc::input_output, std::string{what} + " " + path + ": the machine has lost power (simulated)");
  }
  [[nodiscard]] double share_of(call_kind kind) const noexcept {
    switch (kind) {
      case call_kind::reading: return disk_->quality.read_errors;
      case call_kind::writing: return disk_->quality.write_errors;
      case call_kind::syncing: return disk_->quality.sync_errors;
      case call_kind::naming: break;
    }
    return 0;
  }

  std::shared_ptr<node_disk> disk_;
  std::uint64_t mount_;
};

class mounted_file final : public file {
 public:
  mounted_file(const mounted_disk& on, file_number number, std::string path, open_options how)
      : on_{on}, number_{number}, path_{std::move(path)}, how_{how} {}
  mounted_file(const mounted_file&) = delete;
  mounted_file& operator=(const mounted_file&) = delete;
  ~mounted_file() override {
    if (!on_.dead()) on_.image().close(number_, this);
  }

  result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into) override {
    return on_.call<std::size_t>(call_kind::reading, "read", path_, [&]() -> result<std::size_t> {
      if (!how_.read) return failed("read", path_, disk_errc::denied);
      return contents().read(offset, into);
    });
  }
  result<void> write(std::uint64_t offset, std::span<const std::byte> data) override {
    return store("write", how_.write, data, [&] { return offset; });
  }
  result<void> append(std::span<const std::byte> data) override {
    return store("append", how_.append, data, [&] { return contents().size(); });
  }
  result<void> sync() override {
    return on_.call<void>(
        call_kind::syncing, "sync", path_,
        [&]() -> result<void> {
          contents().sync();
          return {};
        },
        [&] { contents().fail_sync(); });
  }
  result<void> truncate(std::uint64_t size) override {
    return on_.call<void>(call_kind::naming, "truncate", path_, [&]() -> result<void> {
      if (!how_.write && !how_.append) return failed("truncate", path_, disk_errc::denied);
      if (size > contents().size() && size - contents().size() > on_.room())
        return failed("truncate", path_, disk_errc::no_space);
      contents().truncate(size);
      return {};
    });
  }
  result<std::uint64_t> size() override {
    return on_.call<std::uint64_t>(call_kind::naming, "size", path_,
                                   [&]() -> result<std::uint64_t> { return contents().size(); });
  }
  result<bool> lock() override {
    return on_.call<bool>(call_kind::naming, "lock", path_,
                          [&]() -> result<bool> { return on_.image().lock(number_, this); });
  }

 private:
  [[nodiscard]] file_image& contents() { return on_.image().contents(number_); }

  /// Writes at the offset that `where` gives, or a part of the data if the disk is full or fails.
  template <class Where>
  result<void> store(std::string_view what, bool allowed, std::span<const std::byte> data, Where where) {
    const auto fitting = [&] {
      const std::uint64_t end = contents().size() + on_.room();
      return std::min<std::uint64_t>(data.size(), where() < end ? end - where() : 0);
    };
    const auto write_a_part = [&] {
      const std::uint64_t n = on_.chance().below(fitting() + 1);
      contents().write(where(), data.first(n));
      return n;
    };
    return on_.call<void>(
        call_kind::writing, what, path_,
        [&]() -> result<void> {
          if (!allowed) return failed(what, path_, disk_errc::denied);
          if (fitting() < data.size())
            return failed(what, path_, disk_errc::no_space,
                          std::to_string(write_a_part()) + " of " + std::to_string(data.size()) + " bytes written: ");
          contents().write(where(), data);
          return {};
        },
        [&] {
          if (allowed) write_a_part();
        });
  }

  mounted_disk on_;
  file_number number_;
  std::string path_;
  open_options how_;
};

result<std::unique_ptr<file>> mounted_disk::open(const std::string& path, open_options how) {
  using opened = result<std::unique_ptr<file>>;
  if (const auto fault = fault_of(how); !fault.empty())
    return fail(disk_errc::invalid, "open " + path + ": " + std::string{fault});
  return call<std::unique_ptr<file>>(call_kind::naming, "open", path, [&]() -> opened {
    const auto number = image().open(path, how);
    if (!number) return failed("open", path, number.error());
    return std::make_unique<mounted_file>(*this, *number, path, how);
  });
}

node_disk::node_disk(world& w) : world_{w}, image_{std::make_unique<disk_image>()} {}
node_disk::~node_disk() = default;

std::unique_ptr<coppice::disk> node_disk::mount(node_id as) {
  node_ = as;
  return std::make_unique<mounted_disk>(shared_from_this());
}

void node_disk::crash() {
  ++mounts_;
  if (calls_ == 0) return;
  lost_power_ = false;
  crash_at_ = 0;
  dice& by = world_.chance();
  // The extremes are often the states that programs forget: a crash of the program alone, and an old state of the disk.
  const std::uint64_t roll = by.below(8);
  const auto kind = roll == 0 ? crash_kind::keeps_all : roll == 1 ? crash_kind::loses_all : crash_kind::loses_some;
  const crash_count count = image_->crash(kind, by);
  world_.add_to_hash("disk crash", node_.value(), count.kept, count.lost);
  if (world_.traced())
    world_.tell(node_, "the disk kept " + std::to_string(count.kept) + " unsynced changes and lost " +
                           std::to_string(count.lost));
}

}  // namespace coppice::sim
