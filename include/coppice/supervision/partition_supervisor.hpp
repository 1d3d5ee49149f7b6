#pragma once
/// Many children of one kind that share the work by a key.
///
///     const partitions shards{8};
///     supervisor_spec tree{.children = {
///         child<supervisor>(partition_supervisor(shards, [](std::size_t n) { return child<cache>(n); }))
///             .with({.id = "caches"}),
///         child<web_server>(shards)}};
///     ...
///     const auto hit = co_await shards.ref_of<cache>("user 17").call<cache::look_up>("user 17");
///
/// The same key always reaches the same partition, whoever runs there now: a restarted child takes its place.
#include <atomic>
#include <concepts>
#include <functional>
#include <memory>

#include <coppice/supervision/supervisor.hpp>

namespace coppice {

/// Who is responsible for which key. A value: its copies share one table, to be handed to whoever needs it. A look-up
/// takes no lock and asks nobody.
/// Thread safety: any thread.
class partitions {
 public:
  /// Throws `std::invalid_argument` when `count` is 0.
  explicit partitions(std::size_t count);

  /// How many are in use now.
  [[nodiscard]] std::size_t size() const noexcept;
  /// Who has that partition now; nobody before its first start. Throws `std::out_of_range` when it is not in use.
  [[nodiscard]] pid at(std::size_t partition) const;
  /// Whole numbers go round robin, by their absolute value; everything else goes by `std::hash`. Throws
  /// `std::out_of_range` when there are none in use.
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

/// A supervisor with one child for each partition; `each(n)` makes its spec. Their ids are `0`, `1` and so on.
[[nodiscard]] supervisor_spec partition_supervisor(const partitions& where,
                                                   const std::function<child_spec(std::size_t)>& each,
                                                   partition_options options = {});

/// Uses more or fewer partitions, up to as many as there were at first; gives how many there were before. Fewer: keys
/// go elsewhere first, then the surplus children are stopped. More: they are started first. Errors: `invalid`, and
/// those of `restart_child`: then as many are used as are up.
[[nodiscard]] task<result<std::size_t>> resize(ref<supervisor> sup, partitions where, std::size_t count);

}  // namespace coppice
