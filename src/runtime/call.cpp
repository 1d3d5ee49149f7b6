// The parts of a call that do not depend on its types.
#include <stdexcept>

#include <coppice/runtime/call.hpp>

namespace coppice::detail {

void call_base::describe(const waiter& w, wait_info& into) {
  const auto& mine = static_cast<const call_base&>(w);
  into.kind = wait_kind::answer;
  into.whom = mine.to_;
  into.call = mine.call_;
  into.types = {mine.sent_->name};
}

bool call_base::send(std::coroutine_handle<> h, coroutine& me, fail_function fail) {
  if (letter_ == nullptr) throw std::logic_error{"this call was awaited before: make a new one each time"};
  const pid caller = me.id();
  if (to_ == caller) return false;
  me_ = &me;
  call_ = me.new_number();
  asked_->caller = caller;
  asked_->call = call_;
  kernel& k = me.host();
  if (to_.node() != k.node()) [[unlikely]] {
    k.await_remote_reply(caller, call_, to_, fail);
    remote_ = true;
  }
  sent_ = letter_->type;
  k.send(to_, signal::message, std::exchange(letter_, nullptr));
  me.wait(h, *this, timeout_);
  return true;
}

void call_base::forget_remote() {
  remote_ = false;
  me_->host().remote_reply_over(me_->id(), call_, to_);
}

error call_base::timed_out_error() const { return error{errc::timeout, "no answer from " + to_string(to_)}; }
error call_base::calling_self_error() const {
  return error{errc::calling_self, to_string(to_) + " would wait for itself"};
}

error error_of(loss how) {
  switch (how.what) {
    case loss::kind::dropped:
      return error{errc::no_reply, "the request was dropped without an answer; does the callee handle it?"};
    case loss::kind::ended: return error{errc::exited, how.why->to_string()};
    case loss::kind::unreachable:
    case loss::kind::vanished: break;
  }
  if (how.why == nullptr || how.why->what() == exit_reason::kind::noconnection)
    return error{errc::noconnection, how.to ? "no connection to the node of " + to_string(how.to) : ""};
  return error{errc::noproc, how.to ? to_string(how.to) + " is not alive" : "there is nobody to call"};
}

}  // namespace coppice::detail
