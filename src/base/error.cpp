#include <ostream>

#include <coppice/base/error.hpp>

namespace coppice {

struct error::detail {
  std::string text;
  std::unique_ptr<const error> cause;
};

error::error(error_code code, std::string text)
    : code_{code}, detail_{std::make_shared<const detail>(std::move(text), nullptr)} {}
error::error(error_code code, std::string text, error cause)
    : code_{code},
      detail_{std::make_shared<const detail>(std::move(text), std::make_unique<const error>(std::move(cause)))} {}

std::string_view error::text() const noexcept { return detail_ ? std::string_view{detail_->text} : std::string_view{}; }
const error* error::cause() const noexcept { return detail_ ? detail_->cause.get() : nullptr; }
const error& error::root() const noexcept {
  const error* at = this;
  while (at->cause() != nullptr) at = at->cause();
  return *at;
}

std::string error::to_string() const {
  std::string out;
  for (const error* at = this; at != nullptr; at = at->cause()) {
    if (!out.empty()) out += ": ";
    out += at->code_.word();
    if (!at->text().empty()) out.append(": ").append(at->text());
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, error_code code) { return out << code.word(); }
std::ostream& operator<<(std::ostream& out, const error& e) { return out << e.to_string(); }

std::unexpected<error> fail(error_code code, std::string text) {
  return std::unexpected{text.empty() ? error{code} : error{code, std::move(text)}};
}

}  // namespace coppice
