#include <stdexcept>

#include <coppice/supervision/partition_supervisor.hpp>

namespace coppice {

struct partitions::table {
  struct entry {
    std::atomic<std::uint64_t> node{0};
    std::atomic<std::uint64_t> process{0};  // index and serial of the pid
  };
  explicit table(std::size_t n) : entries(n), in_use{n} {}
  void put(std::size_t partition, pid who) noexcept {
    entries[partition].node.store(who.node().value(), std::memory_order_relaxed);
    entries[partition].process.store(std::uint64_t{who.index()} << 32U | who.serial(), std::memory_order_release);
  }
  [[nodiscard]] pid get(std::size_t partition) const noexcept {
    const std::uint64_t process = entries[partition].process.load(std::memory_order_acquire);
    return pid::from_parts(node_id{entries[partition].node.load(std::memory_order_relaxed)},
                           static_cast<std::uint32_t>(process >> 32U), static_cast<std::uint32_t>(process));
  }
  std::vector<entry> entries;
  std::atomic<std::size_t> in_use;
};

partitions::partitions(std::size_t count) {
  if (count == 0) throw std::invalid_argument{"partitions: the count is 0; it must be at least 1"};
  table_ = std::make_shared<table>(count);
}
std::size_t partitions::size() const noexcept { return table_->in_use.load(std::memory_order_acquire); }
pid partitions::at(std::size_t partition) const {
  if (partition >= size())
    throw std::out_of_range{"partition " + std::to_string(partition) + " of " + std::to_string(size())};
  return table_->get(partition);
}
pid partitions::at_hash(std::uint64_t hash) const {
  const std::size_t n = size();
  if (n == 0) throw std::out_of_range{"no partition is in use"};
  return table_->get(hash % n);
}

namespace {

/// Starts a child by its own recipe and puts its process into the table. A process that is spawned can be found before
/// its `init` is done; its mail waits until then.
class partition_recipe final : public detail::recipe {
 public:
  partition_recipe(child_start inner, std::shared_ptr<partitions::table> where, std::size_t partition)
      : recipe{inner.kind()}, inner_{std::move(inner)}, where_{std::move(where)}, partition_{partition} {}
  [[nodiscard]] result<pid> spawn(detail::kernel& k, detail::birth&& with) const override {
    result<pid> spawned = inner_.how().spawn(k, std::move(with));
    if (spawned) where_->put(partition_, *spawned);
    return spawned;
  }
  [[nodiscard]] task<start_result> run(self& supervisor) const override {
    start_result started = co_await inner_.how().run(supervisor);
    if (const pid* who = std::get_if<pid>(&started)) where_->put(partition_, *who);
    co_return started;
  }
  [[nodiscard]] description describe() const override {
    description about = inner_.describe();
    about.facts.push_back({"partition", std::to_string(partition_)});
    return about;
  }
  void find_faults(const std::vector<std::string>& path, std::vector<spec_fault>& into) const override {
    inner_.how().find_faults(path, into);
  }

 private:
  child_start inner_;
  std::shared_ptr<partitions::table> where_;
  std::size_t partition_;
};

}  // namespace

supervisor_spec partition_supervisor(const partitions& where, const std::function<child_spec(std::size_t)>& each,
                                     partition_options options) {
  supervisor_spec spec{.strategy = options.strategy, .limit = options.limit};
  const std::size_t n = where.shared()->entries.size();
  spec.children.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    child_spec child = each(i);
    child.id = std::to_string(i);
    if (child.start)
      child.start = child_start{std::make_shared<partition_recipe>(std::move(child.start), where.shared(), i)};
    spec.children.push_back(std::move(child));
  }
  return spec;
}

task<result<std::size_t>> resize(ref<supervisor> sup, partitions where, std::size_t count) {
  partitions::table& table = *where.shared();
  const std::size_t before = where.size();
  if (count > table.entries.size())
    co_return fail(errc::invalid, "there can be " + std::to_string(table.entries.size()) + " partitions at most, not " +
                                      std::to_string(count));
  if (count < before) table.in_use.store(count, std::memory_order_release);
  for (std::size_t i = count; i < before; ++i) {
    const result<void> stopped = co_await terminate_child(sup, std::to_string(i));
    if (!stopped) co_return std::unexpected{stopped.error()};
  }
  for (std::size_t i = before; i < count; ++i) {
    const result<pid> started = co_await restart_child(sup, std::to_string(i));
    // `running`: a restart of the whole group has started the child although its partition was not in use.
    if (!started && started.error().code() != supervision_errc::running) co_return std::unexpected{started.error()};
    table.in_use.store(i + 1, std::memory_order_release);
  }
  co_return before;
}

}  // namespace coppice
