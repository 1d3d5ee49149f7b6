#pragma once
/// What a child is, for people: a kind, for example `server`, and facts about it.
#include <string>
#include <vector>

namespace coppice {

struct fact {
  std::string name;
  std::string value;
  friend bool operator==(const fact&, const fact&) = default;
};

struct description {
  std::string kind;  ///< `server`, `supervisor`, `function`, or what the type of the child states
  std::vector<fact> facts{};
  friend bool operator==(const description&, const description&) = default;
};
/// For example `server (type: shop::cart, partition: 3)`.
[[nodiscard]] std::string to_string(const description& d);

}  // namespace coppice
