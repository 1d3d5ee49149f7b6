#include <coppice/base/ensure.hpp>
#include <coppice/runtime/detail/future_state.hpp>
#include <coppice/runtime/detail/serving.hpp>
#include <coppice/runtime/spawn.hpp>

namespace coppice::detail {

constinit thread_local std::size_t newest_frame_bytes = 0;

namespace {
/// An address in the function of a frame. Both compilers begin a frame with a pointer to the function that resumes it,
/// and set it to null when the function is done. The thread that runs the frame may do so meanwhile: either value is
/// right, so the thread sanitizer need not see this.
__attribute__((no_sanitize("thread"))) const void* code_of(std::coroutine_handle<> frame) noexcept {
  return frame ? *static_cast<const void* const*>(frame.address()) : nullptr;
}
}  // namespace

void throw_awaited_before() { throw std::logic_error{"this task was awaited or moved away before"}; }

void promise_base::continue_with(promise_base& finished) noexcept {
  if (finished.link_ != nullptr) finished.process_->resume_next(any_frame::from_promise(*finished.link_->parent));
}
void frame_link::wait_in(promise_base& waiting) noexcept {
  coroutine& process = waiting.process();
  promise_base& child = any_frame::from_address(owner->address()).promise();
  child.belong_to(process);
  parent = &waiting;
  child.return_to(*this);
  process.resume_next(*owner);
}

void promise_base::destroy_up_to_outermost(std::coroutine_handle<> innermost) noexcept {
  promise_base* frame = &any_frame::from_address(innermost.address()).promise();
  while (const frame_link* link = frame->link_) {
    frame = link->parent;
    std::exchange(*link->owner, {}).destroy();
  }
}

constinit const body_type coroutine::type_of{
    .offer = &coroutine::offer,
    .destroy = [](body& b, kernel&) noexcept { static_cast<coroutine&>(b).destroy(); },
    .held =
        [](const body& b) noexcept { return static_cast<const coroutine&>(b).held_.load(std::memory_order_relaxed); },
    .code = [](const body& b) noexcept { return code_of(static_cast<const coroutine&>(b).root_); },
    .received = [](const body& b) noexcept { return static_cast<const coroutine&>(b).received(); },
    .describe = &coroutine::describe};

coroutine::coroutine(kernel& k) noexcept : body{&type_of}, self{k} {}

void coroutine::settle(slot& p, std::size_t frame_bytes) noexcept {
  become(p);
  current_turn->born = this;
  p.note_body_bytes(sizeof(coroutine) + frame_bytes);
}

// ---- waiting

void coroutine::wait(std::coroutine_handle<> h, waiter& w, std::chrono::nanoseconds timeout) {
  if (timeout != no_timeout) return wait_with_limit(h, w, timeout);
  ensure(waiting_ == nullptr, "a process waits for two things at once");
  next_ = h;
  waiting_ = &w;
}

void coroutine::wait_with_limit(std::coroutine_handle<> h, waiter& w, std::chrono::nanoseconds timeout) {
  ensure(waiting_ == nullptr, "a process waits for two things at once");
  if (timeout.count() <= 0) [[unlikely]] {
    end_wait_after_queued_signals();
  } else {
    const time_point deadline = kernel_->time_after(timeout);
    extras& x = more();
    if (deadline < x.armed_for) [[unlikely]]
      arm(deadline);
    x.deadline = deadline;
  }
  next_ = h;  // last: if something above throws, no wait has begun
  waiting_ = &w;
}

void coroutine::take_back_wait() noexcept {
  next_ = {};
  waiting_ = nullptr;
  wait_number_ = 0;
  if (extras_) extras_->deadline = no_deadline;
}

void coroutine::end_wait_after_queued_signals() {
  wait_number_ = new_number();
  kernel_->send(id(), signal::wait_over, make_letter<wait_number>(plain<wait_number>, wait_number_));
}

void coroutine::make_extras() { extras_ = std::make_unique<extras>(); }

void coroutine::arm(time_point due) {
  disarm();
  extras_->armed = kernel_->arm(due, id(), signal::wait_over, make_letter<wait_number>(plain<wait_number>));
  extras_->armed_for = due;
}

void coroutine::disarm() {
  if (!extras_ || !extras_->armed) return;
  kernel_->disarm(extras_->armed);
  extras_->armed = {};
  extras_->armed_for = no_deadline;
}

bool coroutine::take_saved(waiter& w) {
  if (held_.load(std::memory_order_relaxed) == 0) return false;
  envelope* before = nullptr;
  for (envelope* e = extras_->saved; e != nullptr;) {
    envelope* after = e->next.load(std::memory_order_relaxed);
    if (!w.kind->take(w, *this, *e)) {
      before = e;
      e = after;
      continue;
    }
    if (slot_->is_set(has_trace_ids | is_measured)) [[unlikely]]
      kernel_->note_receipt(*slot_, serial_, *e);
    handling_.store(e->type, std::memory_order_relaxed);
    remove_saved(before, e);
    return true;
  }
  return false;
}

void coroutine::remove_saved(envelope* before, envelope* e) {
  envelope* after = e->next.load(std::memory_order_relaxed);
  if (before != nullptr)
    before->next.store(after, std::memory_order_relaxed);
  else
    extras_->saved = after;
  const bool ends_at_last = (after == nullptr) == (extras_->saved_last == e);
  if (after == nullptr) extras_->saved_last = before;
  ensure(ends_at_last, "the list of saved messages does not end with the last one");
  const std::uint32_t held = held_.load(std::memory_order_relaxed);
  ensure(held > 0, "more messages leave the saved mail than were put there");
  held_.store(held - 1, std::memory_order_relaxed);
  note_put_aside();
  release(e);
}

/// Messages put aside take room in a limited mailbox.
inline void coroutine::note_put_aside() {
  if (slot_->is(slot::has_policy)) [[unlikely]]
    kernel_->set_put_aside(id(), held_.load(std::memory_order_relaxed));
}

bool coroutine::flush_saved(const message_type& kind, bool (*unwanted)(const envelope&, std::uint64_t),
                            std::uint64_t argument) {
  if (held_.load(std::memory_order_relaxed) == 0) return false;
  envelope* before = nullptr;
  for (envelope* e = extras_->saved; e != nullptr; before = e, e = e->next.load(std::memory_order_relaxed)) {
    if (e->type != &kind || !unwanted(*e, argument)) continue;
    if ((e->tag & envelope::has_trace) != 0) [[unlikely]]
      forget_trace(*kernel_, *e);
    kind.drop(*kernel_, *e, {});
    remove_saved(before, e);
    return true;
  }
  return false;
}

void coroutine::destroy() noexcept {
  disarm();
  if (waiting_ != nullptr && waiting_->kind->keep_frames != nullptr) [[unlikely]] {
    // Nobody else may wait until the operation is over: what the process owes to others is settled now.
    if (serves()) {
      extras_->server->drop_asked();
      extras_->server->answer_all(*kernel_, loss_by(id()));
    }
    drop_saved();
    if (waiting_->kind->keep_frames(*waiting_, *this)) return;  // this object may be destroyed already
  }
  destroy_frames();
  drop_saved();
  free();
}

void coroutine::destroy_kept() noexcept {
  destroy_frames();
  drop_saved();
  free();
}

void coroutine::destroy_frames() noexcept {
  if (!root_) return;
  if (next_) promise_base::destroy_up_to_outermost(next_);
  root_.destroy();
}

void coroutine::drop_saved() noexcept {
  if (!extras_) return;
  const pid me = id();
  const loss how = loss_by(me);
  envelope* left = std::exchange(extras_->saved, nullptr);
  while (left != nullptr) {
    envelope* e = std::exchange(left, left->next.load(std::memory_order_relaxed));
    if (!kernel_->crashed()) kernel_->note_dead_letter(me, *e);
    discard(*kernel_, e, how);
  }
}

void coroutine::destroy_unborn() noexcept {
  if (root_) root_.destroy();
  free();
}

void coroutine::free() noexcept {
  this->~coroutine();
  release(static_cast<void*>(this), sizeof(coroutine));
}

bool coroutine::out_of_turn(std::coroutine_handle<> h) {
  turn* t = turn_here();
  if (t == nullptr || --t->budget > 0) return false;
  yield(h);
  return true;
}

namespace {
// Trivial payloads: nothing to take out.
constexpr wait_type until_woken{.take = [](waiter&, coroutine&, envelope& e) { return e.what() == signal::wake; },
                                .describe = [](const waiter&, wait_info& into) { into.kind = wait_kind::turn; }};
constinit waiter wake_waiter{&until_woken};
}  // namespace

void coroutine::yield(std::coroutine_handle<> h) {
  next_ = h;
  waiting_ = &wake_waiter;
  if (turn* t = turn_here()) t->budget = 0;  // so that other processes run first
  kernel_->send(id(), signal::wake, make_letter<wait_number>(plain<wait_number>));
}

void coroutine::end(std::coroutine_handle<> h, exit_reason why) {
  next_ = h;
  waiting_ = &wake_waiter;
  stop(std::move(why));
}

// ---- signals

verdict coroutine::offer(body& b, turn& t, envelope& e) {
  auto& me = static_cast<coroutine&>(b);
  switch (e.what()) {
    case signal::message: return me.take(t, e);
    case signal::start: return me.drain(t);
    case signal::fast: e.type->drop(*t.k, e, {}); return verdict::alive;  // coroutines have no fast lane
    default: t.message = me.received();  // a report of a failure names the message it received last
  }
  ensure(me.waiting_ != nullptr, "a signal for a process that waits for nothing");
  if (e.what() == signal::wait_over) return me.wait_may_be_over(t, e);
  // A reply, notice or wake-up that the process does not wait for (any more) is dropped.
  if (me.waiting_->kind->take(*me.waiting_, me, e)) return me.drain(t);
  if (!take_answer_of_future(t, e)) e.type->drop(*t.k, e, {});
  return verdict::alive;
}

verdict coroutine::take(turn& t, envelope& e) {
  const message_type* kind = e.type;
  if (waiting_->kind->take(*waiting_, *this, e)) {
    handling_.store(kind, std::memory_order_relaxed);
    return drain(t);
  }
  if (slot_->is_set(has_trace_ids)) [[unlikely]]
    kernel_->put_trace_id_aside(*slot_, serial_, e);
  // The message is put aside. Its `next` belongs to the queue until the kernel has advanced past the envelope; the
  // kernel then clears it.
  extras& x = more();
  if (x.saved_last != nullptr)
    x.saved_last->next.store(&e, std::memory_order_relaxed);
  else
    x.saved = &e;
  x.saved_last = &e;
  held_.store(held_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  note_put_aside();
  return verdict::kept;
}

verdict coroutine::wait_may_be_over(turn& t, envelope& e) {
  const std::uint32_t number = static_cast<letter<wait_number>&>(e).body.value;
  if (number != 0) {
    if (number != wait_number_) return verdict::alive;
  } else {
    ensure(extras_ != nullptr, "a timer of a wait for a process that has armed none");
    extras_->armed = {};
    extras_->armed_for = no_deadline;
    if (extras_->deadline == no_deadline) return verdict::alive;
    if (kernel_->now() < extras_->deadline) {
      arm(extras_->deadline);
    } else {  // signals that have arrived by now still count: the wait ends at a mark behind them
      end_wait_after_queued_signals();
    }
    return verdict::alive;
  }
  if (waiting_->kind->cancel_at_timeout != nullptr && waiting_->kind->cancel_at_timeout(*waiting_)) {
    wait_number_ = 0;
    if (extras_) extras_->deadline = no_deadline;
    return verdict::alive;
  }
  ensure(waiting_->kind->expire != nullptr, "a wait without a limit has timed out");
  waiting_->kind->expire(*waiting_);
  return drain(t);
}

verdict coroutine::drain(turn& t) {
  waiting_ = nullptr;
  wait_number_ = 0;
  if (extras_) extras_->deadline = no_deadline;
  while (next_ && waiting_ == nullptr) std::exchange(next_, {}).resume();
  ensure(waiting_ != nullptr || root_.done(), "a frame has suspended, and its process waits for nothing");
  if (t.ends && waiting_ != nullptr && serves()) [[unlikely]]  // a server ends only when its handler has returned
    extras_->server->take_stop(t);
  return t.ends || waiting_ == nullptr ? verdict::ended : verdict::alive;
}

void coroutine::continue_next() noexcept {
  if (serves()) extras_->server->continues = true;
}

// ---- what observers see

void coroutine::describe(const body& b, kernel& k, process_info& into) {
  const auto& me = static_cast<const coroutine&>(b);
  const serving* server = me.extras_ ? me.extras_->server : nullptr;
  if (server != nullptr && server->type != nullptr) into.type = server->type->name;
  if (me.received() != nullptr) into.handling = me.received()->name;
  if (me.waiting_ == nullptr) return;
  if (me.waiting_->kind->describe != nullptr) me.waiting_->kind->describe(*me.waiting_, into.waits);
  if (server != nullptr && into.waits.kind == wait_kind::mail) into.handling = {};
  if (me.extras_ && me.extras_->deadline != no_deadline)
    into.waits.left = std::max(std::chrono::duration_cast<std::chrono::milliseconds>(me.extras_->deadline - k.now()),
                               std::chrono::milliseconds{0});
  promise_base::for_each_frame(me.next_, [&](std::coroutine_handle<> frame) {
    std::string name = k.env().function_at(code_of(frame));
    if (!name.empty()) into.frames.push_back(std::move(name));
  });
  for (const envelope* e = me.extras_ ? me.extras_->saved : nullptr; e != nullptr;
       e = e->next.load(std::memory_order_relaxed))
    count_mail(into.mail, e->type->name);
}

const message_type coroutine_start::type_of{.name = {},
                                            .size = sizeof(coroutine_start),
                                            .drop = &coroutine_start::drop,
                                            .object = {.deliver = &coroutine_start::make}};

}  // namespace coppice::detail
