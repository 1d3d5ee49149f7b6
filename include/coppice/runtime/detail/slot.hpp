#pragma once
/// A process as the kernel keeps it: one cache line, in memory that is never given back while the runtime lives.
///
/// The ownership rule: the thread that turns a mailbox from idle to not idle OWNS the process, and only the owner may
/// touch the plain fields of the slot. It stays the owner until it hands the process on, for example to a worker, or
/// the mailbox is idle again. Therefore a message costs two atomic operations, a sender with an old pid may push into a
/// reused slot (the serial does not match), and to spawn is to push the first envelope with a new serial.
#include <algorithm>
#include <atomic>
#include <cstdint>

#include <coppice/runtime/detail/mailbox.hpp>

namespace coppice {
struct process_info;
}  // namespace coppice

namespace coppice::detail {

/// The outcome of one signal. `kept`: the process is alive, and its body keeps the envelope.
enum class verdict : std::uint8_t { alive, kept, ended };

struct turn;
struct body;

/// What a kind of process does with its signals; one object per kind.
struct body_type {
  /// Handles one signal for the body: a message, or another signal that the kernel does not handle itself.
  verdict (*offer)(body&, turn&, envelope&) = nullptr;
  void (*destroy)(body&, kernel&) noexcept = nullptr;
  /// How many messages it has put aside.
  std::uint32_t (*held)(const body&) noexcept = nullptr;
  /// Cleans up when the process ends by itself, and returns the reason it ends with. Null: nothing to clean up.
  exit_reason (*terminate)(body&, turn&, exit_reason) = nullptr;
  /// The envelope it handles now when that is not the head of its queue, otherwise null. Called by other threads.
  envelope* (*in_hand)(const body&) noexcept = nullptr;
  bool puts_mail_aside = false;  ///< `held` may be called by its owner only
  /// The class of the body. Empty: the body is a function, see `code`.
  std::string_view name{};
  /// An address in the function that is the body; null: see `name`. Called by other threads.
  const void* (*code)(const body&) noexcept = nullptr;
  /// The type of the message that it has received last; null: none. Called by other threads, while its code runs. A
  /// null function: it handles the head of its queue, or `in_hand`.
  const message_type* (*received)(const body&) noexcept = nullptr;
  /// For observers: what it waits for, what it handles, and the messages that it has put aside. Called by the owner,
  /// while its code does not run. Null: it waits for mail, and puts none aside.
  void (*describe)(const body&, kernel&, process_info& into) = nullptr;
  /// Tells a process of this kind that one of its messages waits for room in the mailbox of `receiver`, or no longer
  /// waits. Null: processes of this kind can't wait for room.
  void (*tell_of_room)(kernel&, pid sender, pid receiver, bool waits) = nullptr;
};
struct body {
  const body_type* type = nullptr;
};

struct side_block;

struct alignas(64) slot {
  // Flags in the tag, beside the serial and the signal that the slot accepts. Only the owner writes them; before the
  // process begins, its spawner does.
  static constexpr std::uint64_t traps_exits = 1U << 16U;
  static constexpr std::uint64_t parent_linked = 1U << 17U;
  static constexpr std::uint64_t has_process = 1U << 18U;
  static constexpr std::uint64_t born_linked = 1U << 19U;    // spawned linked: the spawner stays its parent for life
  static constexpr std::uint64_t has_fast_lane = 1U << 20U;  // has a fast lane: some signals are delivered before mail
  static constexpr std::uint64_t has_policy = 1U << 21U;     // has a mailbox policy, which holds its mail
  static constexpr std::uint64_t puts_mail_aside =
      1U << 22U;  // puts all mail aside at once, so the fast lane is not searched
  static constexpr std::uint64_t parent_reports = 1U << 23U;  // its parent logs its failures
  static constexpr std::uint64_t flags = 0xffff0000U;

  mailbox mail;
  std::atomic<std::uint64_t> tag{0};  // serial and signal of the messages it accepts now, and the flags
  body* process = nullptr;
  side_block* side = nullptr;
  // The process that spawned this one; 0: none. The link to it is a flag in the tag, because nearly every process has
  // that link. All fields from here on are atomic because observers read them.
  std::atomic<std::uint32_t> parent_index{0};
  std::atomic<std::uint32_t> parent_serial{0};
  std::atomic<std::uint32_t> handled{0};
  std::atomic<std::uint32_t> since_cs{0};  // when its last signal was handled, as `turn::clock_cs`
  std::atomic<std::uint8_t> urgent{0};     // what the owner has to do before the next signal: see below
  std::atomic<std::uint8_t> named{0};
  std::atomic<std::uint16_t> body_units{0};  // memory of the body and its frames, in units of 16 bytes
  std::atomic<std::uint32_t> born_ds{0};     // tenths of a second since the runtime started

  [[nodiscard]] std::uint64_t tag_now() const noexcept { return tag.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t serial() const noexcept { return static_cast<std::uint32_t>(tag_now() >> 32U); }
  /// The process of that serial has ended, all its links and monitors were notified, and another process has the slot.
  [[nodiscard]] bool is_past(std::uint32_t serial_of_it) const noexcept {
    const std::uint64_t now = tag.load(std::memory_order_acquire);
    return (now & has_process) != 0 && now >> 32U != serial_of_it;
  }
  /// As `is_past`, or the process in the slot has a mailbox policy.
  [[nodiscard]] bool is_special(std::uint32_t serial_of_it) const noexcept {
    const std::uint64_t now = tag.load(std::memory_order_acquire);
    return (now & has_policy) != 0 || ((now & has_process) != 0 && now >> 32U != serial_of_it);
  }
  [[nodiscard]] bool accepts(const envelope& e) const noexcept { return ((e.tag ^ tag_now()) & ~flags) == 0; }
  [[nodiscard]] bool is(std::uint64_t flag) const noexcept { return (tag_now() & flag) != 0; }
  /// Whether one of these bits of `urgent` is set.
  [[nodiscard]] bool is_set(std::uint8_t bits) const noexcept {
    return (urgent.load(std::memory_order_relaxed) & bits) != 0;
  }
  void note_body_bytes(std::size_t bytes) noexcept {
    body_units.store(static_cast<std::uint16_t>(std::min<std::size_t>(bytes / 16, 0xffff)), std::memory_order_relaxed);
  }
  void set(std::uint64_t flag, bool on) noexcept {
    tag.store(on ? tag_now() | flag : tag_now() & ~flag, std::memory_order_relaxed);
  }
};
static_assert(sizeof(slot) == 64);

// Bits of `slot::urgent`, set by others and looked at by the owner before each signal.
inline constexpr std::uint8_t look_for_exit = 1;      // an exit that may end the process is in the queue
inline constexpr std::uint8_t describe_yourself = 2;  // an observer waits for a description of the process
inline constexpr std::uint8_t look_for_fast = 4;      // a signal that goes before mail is in the queue
inline constexpr std::uint8_t is_frozen = 8;          // stays set until the process is thawed or ends
inline constexpr std::uint8_t in_world_trace = 16;    // in a simulation, during a turn: tell the tracer each signal
inline constexpr std::uint8_t has_trace_ids = 32;     // the runtime has trace ids; stays set
inline constexpr std::uint8_t is_measured = 64;       // the times of its handlers are measured: see `runtime::measure`
/// Bits that make every signal of the process take the slow path, `process_runner::handle_observed`.
inline constexpr std::uint8_t is_observed = in_world_trace | has_trace_ids | is_measured;

}  // namespace coppice::detail
