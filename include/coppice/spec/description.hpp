#pragma once
/// What a child is, for people: the kind of its start, and facts that the kind knows.
#include <string>
#include <vector>

namespace coppice {

struct fact {
  std::string name;
  std::string value;
  friend bool operator==(const fact&, const fact&) = default;
};

struct description {
  std::string kind;  ///< for example `server`, `supervisor`, `function`
  std::vector<fact> facts{};
  friend bool operator==(const description&, const description&) = default;
};
/// `server (type: shop::cart, partition: 3)`
[[nodiscard]] std::string to_string(const description& d);

}  // namespace coppice
