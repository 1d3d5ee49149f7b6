#pragma once
/// Several children of one kind that share the work by a key.
///
///     const partitions shards{8};
///     supervisor_spec tree{.children = {
///         child<supervisor>(partition_supervisor(shards, [](std::size_t n) { return child<cache>(n); }))
///             .with({.id = "caches"}),
///         child<web_server>(shards)}};
///     ...
///     const auto hit = co_await shards.ref_of<cache>("user 17").call<cache::look_up>("user 17");
///
/// The same key always leads to the same partition, also after a restart of its child, until `resize` changes the
/// number of partitions.
#include <atomic>
#include <concepts>
#include <functional>
#include <memory>

#include <coppice/supervision/supervisor.hpp>

namespace coppice {

/// Which process serves which key. Copies share one table and may be passed to any process. A look-up takes no lock and
/// sends no message.
/// Thread safety: any thread.
class partitions {
 public:
  /// Throws `std::invalid_argument` when `count` is 0.
  explicit partitions(std::size_t count);

  /// The number of partitions in use.
  [[nodiscard]] std::size_t size() const noexcept;
  /// The process of a partition: while its child is down, the last one; nobody before its first start. Throws
  /// `std::out_of_range` when the partition is not in use.
  [[nodiscard]] pid at(std::size_t partition) const;
  /// The process for a key. Integers are mapped by their absolute value modulo the number of partitions, other keys by
  /// `std::hash`. Throws `std::out_of_range` when no partition is in use.
  template <class Key>
  [[nodiscard]] pid of(const Key& key) const {
    if constexpr (std::integral<Key>)
      return at_hash(key < Key{} ? std::uint64_t{0} - static_cast<std::uint64_t>(key)
                                 : static_cast<std::uint64_t>(key));
    else if constexpr (std::convertible_to<const Key&, std::string_view>)
      return at_hash(std::hash<std::string_view>{}(key));
    else
      return at_hash(std::hash<Key>{}(key));
  }
  template <class T, class Key>
  [[nodiscard]] ref<T> ref_of(const Key& key) const {
    return ref<T>{of(key)};
  }

  /// For the library.
  struct table;
  [[nodiscard]] const std::shared_ptr<table>& shared() const noexcept { return table_; }

 private:
  [[nodiscard]] pid at_hash(std::uint64_t hash) const;
  std::shared_ptr<table> table_;
};

struct partition_options {
  coppice::strategy strategy = coppice::strategy::one_for_one;
  restart_limit limit{};
};

/// The spec of a supervisor with one child for each partition. `each(n)` makes the spec of a child; its id becomes `n`.
[[nodiscard]] supervisor_spec partition_supervisor(const partitions& where,
                                                   const std::function<child_spec(std::size_t)>& each,
                                                   partition_options options = {});

/// Changes the number of partitions in use, at most to the number that `where` was made with, and returns the previous
/// number. To use fewer, maps the keys to the remaining partitions first, then stops the other children. To use more,
/// starts the children first. Errors: `invalid` if `count` is too large; those of `terminate_child`: the new number is
/// in use all the same; those of `restart_child`: the partitions before the one that failed are in use.
[[nodiscard]] task<result<std::size_t>> resize(ref<supervisor> sup, partitions where, std::size_t count);

}  // namespace coppice
