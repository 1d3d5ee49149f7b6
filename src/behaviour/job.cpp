#include <stdexcept>

#include <coppice/behaviour/async_stream.hpp>
#include <coppice/spec/detail/stop_ladder.hpp>

namespace coppice::detail {

void job_base::finish(kernel& k) {
  auto* news = make_letter<job_done>(plain<job_done>, shared_from_this());
  const bool twice = done_.exchange(true, std::memory_order_release);
  ensure(!twice, "a job was finished twice");
  k.send(caller, signal::notice, news);
}

void fail_unstarted(job_base& job) {
  const loss how = loss_by(process_here());
  if (how.what != loss::kind::ended) return;  // the process could not be spawned, which its owner knows
  if (!job.answered.exchange(true)) job.fail(kernel_here(), job, *how.why);
}

void job_base::must_be_mine() const {
  const pid here = process_here();
  if (here != caller)
    throw std::logic_error{"the job " + to_string(who) + " belongs to " + to_string(caller) +
                           ", and only that process may wait for it; this is " + to_string(here)};
}

void job_base::cut_link() {
  if (!std::exchange(linked, false)) return;
  turn* t = turn_here();
  if (t == nullptr || t->k->pid_of(*t->p) != caller) return;  // the owner is ending, perhaps in another process's turn
  // The link that the job makes itself may still be in flight. It is recorded first, because a link that the owner does
  // not know cannot be cut, and would arrive later.
  if (links_itself) t->k->adopt(*t->p, caller, who, true, {});
  const kernel_section mine{*t->p, caller.serial()};
  if (!mine) return;  // the owner was abandoned, and its links have been notified
  t->k->unlink(*t->p, who);
  // The result reports the end of the job, so an `exited` that is already in the mailbox of an owner that traps exits
  // is dropped.
  if (t->p->process->type != &coroutine::type_of) return;
  const auto from_it = [](const envelope& e, std::uint64_t it) {
    const auto& x = static_cast<const letter<exited>&>(e).body;
    return x.linked && x.from.index() == it >> 32U && x.from.serial() == static_cast<std::uint32_t>(it);
  };
  static_cast<coroutine*>(t->p->process)
      ->flush_saved(plain<exited>, from_it, std::uint64_t{who.index()} << 32U | who.serial());
}

void job_base::kill() const {
  if (turn* t = turn_here()) t->k->send_exit(who, {caller, exit_reason::kill(), false});
}

task<> until_done(std::shared_ptr<job_base> job, std::chrono::nanoseconds timeout) {
  if (job->is_done()) co_return;
  job->awaited_by = job.get();
  const auto got = co_await any_done(job.get(), timeout);
  job->awaited_by = nullptr;
}

task<bool> end_job(std::shared_ptr<job_base> job, exit_reason how, std::chrono::nanoseconds timeout) {
  kernel& k = kernel_here();
  job->cut_link();
  const bool brutal = how.what() == exit_reason::kind::kill;
  process_stop stop{{.by = job->caller, .who = job->who, .what = "job"},
                    brutal ? shutdown::brutal_kill() : shutdown{timeout},
                    job_stuck_after};
  while (!job->is_done()) {
    const std::chrono::nanoseconds wait = stop.advance(k, how);
    co_await until_done(job, wait);
  }
  if (!job->ended_with) co_return false;
  const bool in_time = !stop.taken() || *stop.taken() == stop_step::ask;
  const exit_reason expected = brutal ? exit_reason::killed() : how;
  co_return (brutal || in_time) && *job->ended_with == expected;
}

void check_stream(const stream_options& how) {
  if (how.timeout.count() <= 0) throw std::invalid_argument{"stream_options::timeout must be more than 0"};
  if (how.buffer == 0) throw std::invalid_argument{"stream_options::buffer must be at least 1"};
}

}  // namespace coppice::detail
