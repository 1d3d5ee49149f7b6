#pragma once
/// Why a process ended. Every process ends with exactly one reason, which the processes linked to it and those that
/// monitor it receive.
#include <atomic>
#include <compare>
#include <cstdint>
#include <exception>
#include <iosfwd>
#include <string>
#include <string_view>

namespace coppice {

/// One word wide. Copying a reason without a text costs nothing; copies of a reason with a text share the text.
/// Thread safety: distinct objects may be used from different threads.
class exit_reason {
 public:
  enum class kind : std::uint8_t {
    normal,        ///< its work is done
    shutdown,      ///< it was asked to stop (with or without a detail)
    kill,          ///< the request that no process survives; an ordinary reason if a process ends itself with it
    killed,        ///< it was ended by a kill
    noproc,        ///< there was no such process
    noconnection,  ///< its node can't be reached
    abandoned,     ///< it was stuck in code that did not return, and was abandoned
    error,         ///< it failed; see the details
  };

  /// `normal`.
  constexpr exit_reason() noexcept = default;
  exit_reason(const exit_reason& other) noexcept : bits_{other.bits_} { retain(); }
  exit_reason(exit_reason&& other) noexcept : bits_{other.bits_} { other.bits_ = plain(kind::normal); }
  exit_reason& operator=(exit_reason other) noexcept {
    std::swap(bits_, other.bits_);
    return *this;
  }
  ~exit_reason() { release(); }

  [[nodiscard]] static exit_reason normal() noexcept { return exit_reason{kind::normal}; }
  [[nodiscard]] static exit_reason shutdown() noexcept { return exit_reason{kind::shutdown}; }
  [[nodiscard]] static exit_reason shutdown(std::string detail);
  [[nodiscard]] static exit_reason kill() noexcept { return exit_reason{kind::kill}; }
  [[nodiscard]] static exit_reason killed() noexcept { return exit_reason{kind::killed}; }
  [[nodiscard]] static exit_reason noproc() noexcept { return exit_reason{kind::noproc}; }
  [[nodiscard]] static exit_reason noconnection() noexcept { return exit_reason{kind::noconnection}; }
  [[nodiscard]] static exit_reason abandoned() noexcept { return exit_reason{kind::abandoned}; }
  /// A failure in your own words.
  [[nodiscard]] static exit_reason error(std::string what);
  /// A failure by an exception: its type, its text, and the message that was being handled.
  [[nodiscard]] static exit_reason error(std::string exception_type, std::string what, std::string message);

  [[nodiscard]] kind what() const noexcept;
  /// Neither `normal` nor `shutdown`: a supervisor restarts a transient child that ended with such a reason.
  [[nodiscard]] bool abnormal() const noexcept { return what() != kind::normal && what() != kind::shutdown; }
  /// The detail of a shutdown, or the text of an error; empty otherwise.
  [[nodiscard]] std::string_view text() const noexcept;
  /// The type of the exception that ended the process; empty if it was not an exception.
  [[nodiscard]] std::string_view exception_type() const noexcept;
  /// The type of the message that the process was handling when it failed; empty if there was none.
  [[nodiscard]] std::string_view message() const noexcept;
  /// For example `error: std::runtime_error: out of luck (handling counter::bump)`.
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const exit_reason& a, const exit_reason& b) noexcept;
  friend std::ostream& operator<<(std::ostream& out, const exit_reason& r);

 private:
  struct record;
  // A plain kind as an odd number, or the address of a shared record.
  static constexpr std::uintptr_t plain(kind k) noexcept {
    return std::uintptr_t{static_cast<std::uint8_t>(k)} << 1U | 1U;
  }
  constexpr explicit exit_reason(kind k) noexcept : bits_{plain(k)} {}
  explicit exit_reason(const record* r) noexcept;
  [[nodiscard]] const record* shared() const noexcept;
  void retain() const noexcept {
    if ((bits_ & 1U) == 0) retain_shared();
  }
  void release() noexcept {
    if ((bits_ & 1U) == 0) release_shared();
  }
  void retain_shared() const noexcept;
  void release_shared() noexcept;

  std::uintptr_t bits_ = plain(kind::normal);
};

[[nodiscard]] std::string_view to_string(exit_reason::kind k) noexcept;

/// Throw it anywhere in a process to end the process with `reason`. All frames are unwound, which is slow: where you
/// can, return, or use `self::stop` or `co_await self::exit`.
class exit_with : public std::exception {
 public:
  explicit exit_with(exit_reason reason) noexcept : reason_{std::move(reason)} {}
  [[nodiscard]] const exit_reason& reason() const noexcept { return reason_; }
  [[nodiscard]] const char* what() const noexcept override { return "coppice::exit_with"; }

 private:
  exit_reason reason_;
};

}  // namespace coppice
