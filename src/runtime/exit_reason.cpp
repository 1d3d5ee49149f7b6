#include <ostream>

#include <coppice/base/cxx23.hpp>
#include <coppice/runtime/detail/pool.hpp>
#include <coppice/runtime/exit_reason.hpp>
#include <coppice/runtime/pid.hpp>

namespace coppice {

struct exit_reason::record {
  // Pooled: a reason is often made by one thread and dropped by another.
  static void* operator new(std::size_t n) { return detail::allocate(n); }
  static void operator delete(void* p, std::size_t n) noexcept { detail::release(p, n); }
  mutable std::atomic<std::uint32_t> owners{1};
  kind what;
  std::string text;
  std::string exception_type;
  std::string message;
};

exit_reason::exit_reason(const record* r) noexcept : bits_{reinterpret_cast<std::uintptr_t>(r)} {}
const exit_reason::record* exit_reason::shared() const noexcept {
  return (bits_ & 1U) != 0 ? nullptr : reinterpret_cast<const record*>(bits_);
}
void exit_reason::retain_shared() const noexcept { shared()->owners.fetch_add(1, std::memory_order_relaxed); }
void exit_reason::release_shared() noexcept {
  if (shared()->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete shared();
}

exit_reason exit_reason::shutdown(std::string detail) {
  return exit_reason{
      new record{.what = kind::shutdown, .text = std::move(detail), .exception_type = {}, .message = {}}};
}
exit_reason exit_reason::error(std::string what) {
  return exit_reason{new record{.what = kind::error, .text = std::move(what), .exception_type = {}, .message = {}}};
}
exit_reason exit_reason::error(std::string exception_type, std::string what, std::string message) {
  return exit_reason{new record{.what = kind::error,
                                .text = std::move(what),
                                .exception_type = std::move(exception_type),
                                .message = std::move(message)}};
}

exit_reason::kind exit_reason::what() const noexcept {
  const record* r = shared();
  return r != nullptr ? r->what : static_cast<kind>(bits_ >> 1U);
}
std::string_view exit_reason::text() const noexcept {
  const record* r = shared();
  return r != nullptr ? std::string_view{r->text} : std::string_view{};
}
std::string_view exit_reason::exception_type() const noexcept {
  const record* r = shared();
  return r != nullptr ? std::string_view{r->exception_type} : std::string_view{};
}
std::string_view exit_reason::message() const noexcept {
  const record* r = shared();
  return r != nullptr ? std::string_view{r->message} : std::string_view{};
}

std::string exit_reason::to_string() const {
  std::string out{coppice::to_string(what())};
  if (!exception_type().empty()) out.append(": ").append(exception_type());
  if (!text().empty()) out.append(": ").append(text());
  if (!message().empty()) out.append(" (handling ").append(message()).append(")");
  return out;
}

bool operator==(const exit_reason& a, const exit_reason& b) noexcept {
  return a.bits_ == b.bits_ || (a.what() == b.what() && a.text() == b.text() &&
                                a.exception_type() == b.exception_type() && a.message() == b.message());
}
std::ostream& operator<<(std::ostream& out, const exit_reason& r) { return out << r.to_string(); }

std::string_view to_string(exit_reason::kind k) noexcept {
  switch (k) {
    case exit_reason::kind::normal: return "normal";
    case exit_reason::kind::shutdown: return "shutdown";
    case exit_reason::kind::kill: return "kill";
    case exit_reason::kind::killed: return "killed";
    case exit_reason::kind::noproc: return "noproc";
    case exit_reason::kind::noconnection: return "noconnection";
    case exit_reason::kind::abandoned: return "abandoned";
    case exit_reason::kind::error: return "error";
  }
  return "unknown";
}

std::string to_string(pid who) {
  return "<" + std::to_string(who.node().value()) + "." + std::to_string(who.index()) + "." +
         std::to_string(who.serial()) + ">";
}
std::ostream& operator<<(std::ostream& out, pid who) { return out << to_string(who); }

}  // namespace coppice
