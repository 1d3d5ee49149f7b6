#include "internal/failure_text.hpp"

#include <cxxabi.h>

#include <concepts>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <system_error>
#include <typeinfo>
#include <utility>

namespace coppice::detail {

namespace {

constexpr int most_causes = 10;

void replace_all(std::string& text, std::string_view part, std::string_view by) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + by.size()))
    text.replace(at, part.size(), by);
}

std::string demangled(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text{abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free};
  return status == 0 ? text.get() : mangled;
}

/// Without the names that only the standard library uses.
std::string readable(std::string name) {
  replace_all(name, "__cxx11::", "");
  replace_all(name, "[abi:cxx11]", "");
  replace_all(name, "std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string");
  constexpr std::string_view nested = "std::_Nested_exception<";  // the type that `std::throw_with_nested` throws
  if (name.starts_with(nested) && name.ends_with('>')) {
    name = name.substr(nested.size(), name.size() - nested.size() - 1);
    if (name.ends_with(' ')) name.pop_back();
  }
  return name;
}

struct known_type {
  const std::type_info* type = nullptr;
  std::string name;
  bool nests = false;  // it has the base class `std::nested_exception`
};

/// The last type is cached: demangling costs as much as throwing, and failures repeat.
const known_type& last_type(const std::type_info& type, const std::exception* x) {
  thread_local known_type last;
  if (last.type != &type)
    last = {&type, readable(demangled(type.name())), dynamic_cast<const std::nested_exception*>(x) != nullptr};
  return last;
}

template <class T>
concept number = std::integral<T> || std::floating_point<T>;
std::string text_of_value(number auto value) { return std::to_string(value); }
std::string text_of_value(bool value) { return value ? "true" : "false"; }
std::string text_of_value(char value) { return std::string(1, value); }
std::string text_of_value(const char* text) { return text != nullptr ? text : ""; }
std::string text_of_value(const std::string& text) { return text; }
std::string text_of_value(std::string_view text) { return std::string{text}; }
std::string text_of_value(const std::error_code& code) { return code.message(); }

/// The value of the exception that is being handled, if it has one of the types.
template <class T, class... Others>
std::string value_in_hand() {
  try {
    throw;
  } catch (const T& value) {
    return text_of_value(value);
  } catch (...) {
    if constexpr (sizeof...(Others) > 0)
      return value_in_hand<Others...>();
    else
      return {};
  }
}

/// The exception that is nested in `x`; null: none.
std::exception_ptr nested_in(const std::exception& x) {
  const auto* nested = dynamic_cast<const std::nested_exception*>(&x);
  return nested != nullptr ? nested->nested_ptr() : nullptr;
}
/// The same for the exception that is being handled, whatever its type is.
std::exception_ptr nested_in_hand() {
  try {
    throw;
  } catch (const std::nested_exception& x) {
    return x.nested_ptr();
  } catch (...) {
    return nullptr;
  }
}

/// For the exception that is being handled, if it is not a `std::exception`. Without its causes.
failure_text without_causes() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) return {"unknown", {}};
  return {last_type(*type, nullptr).name,
          value_in_hand<const char*, std::string, std::string_view, int, unsigned, long, unsigned long, long long,
                        unsigned long long, bool, char, double, float, std::error_code>()};
}

void append_cause(std::string& text, const failure_text& cause) {
  text.append(text.empty() ? "caused by " : "; caused by ").append(cause.type);
  if (!cause.text.empty()) text.append(": ").append(cause.text);
}

/// The first cause, then the exception that is nested in it, and so on.
void append_causes(std::string& text, std::exception_ptr next) {
  for (int i = 0; next && i < most_causes; ++i) {
    try {
      std::rethrow_exception(std::exchange(next, nullptr));
    } catch (const std::exception& cause) {
      append_cause(text, {last_type(typeid(cause), &cause).name, cause.what() != nullptr ? cause.what() : ""});
      next = nested_in(cause);
    } catch (...) {
      append_cause(text, without_causes());
      next = nested_in_hand();
    }
  }
  if (next) text += "; and more causes";
}

}  // namespace

failure_text text_of(const std::exception& x) {
  const known_type& type = last_type(typeid(x), &x);
  failure_text out{type.name, x.what() != nullptr ? x.what() : ""};
  if (type.nests) [[unlikely]]
    append_causes(out.text, nested_in(x));
  return out;
}

failure_text text_of_other() {
  failure_text out = without_causes();
  append_causes(out.text, nested_in_hand());
  return out;
}

}  // namespace coppice::detail
