#pragma once
/// Forward declarations of what `coppice/base` defines.

namespace coppice {

class broken_invariant;
class error;
class error_code;
enum class errc : unsigned char;

template <class E>
struct error_category;
template <class Key, class Value, class Hash>
class flat_map;

}  // namespace coppice
