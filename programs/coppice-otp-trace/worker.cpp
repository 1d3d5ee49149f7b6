#include "worker.hpp"

namespace otp_trace {
namespace {

/// Never sent: a stubborn worker waits for it until it is killed.
struct release {};

}  // namespace

coppice::init_result worker::init(coppice::self& me) {
  switch (stage_->next_start(id_)) {
    case start::fail:
      stage_->event("failed " + id_);
      return coppice::init_result::stop(coppice::exit_reason::error("failed"));
    case start::ignore: stage_->event("ignored " + id_); return coppice::init_result::ignore();
    case start::ok: break;
  }
  const options& how = stage_->how(id_);
  if (how.trap) me.trap_exits();
  stubborn_ = how.stubborn;
  stage_->has_begun(id_, me.id());
  stage_->event("started " + id_);
  return coppice::init_result::ok();
}

coppice::task<> worker::terminate(const coppice::exit_reason& why, coppice::self& me) {
  stage_->event("stopping " + id_ + " " + word_for(why));
  if (stubborn_ && why == coppice::exit_reason::shutdown()) co_await me.receive<release>();
}

}  // namespace otp_trace
