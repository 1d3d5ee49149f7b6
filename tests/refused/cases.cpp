// Code that must not compile, one case at a time (-D CASE=n), each with a part of the expected error. CASE=0 must
// compile. See check.py.
#include <coppice/actor/router.hpp>
#include <coppice/runtime/runtime.hpp>

using namespace coppice;
using namespace coppice::actor;

struct bump {
  using reply = int;
};
struct stray {};

struct counter {
  using protocol = coppice::protocol<bump>;
  static int handle(bump, context&) { return 1; }
};

#if CASE == 0
actor_ref<counter> sound(runtime& rt) { return spawn_actor(rt, props<counter>()); }
struct generic {
  using protocol = coppice::protocol<bump>;
  static auto handle(bump, auto& me) { return static_cast<int>(me.id().index()); }
};
ref<generic> is_a_server(runtime& rt) { return rt.spawn<generic>(); }
struct tree : counter {
  explicit tree(int) {}
  tree(const props<tree>&, int) {}
};
props<tree> takes_its_own_props() { return props<tree>(props<tree>(1), 2); }

#elif CASE == 1
// refused: no handler for this message, or does not list it in its protocol
void sends_what_is_not_handled(runtime& rt, actor_ref<counter> to) { rt.cast<stray>(to); }

#elif CASE == 2
// refused: the protocol lists a message that the class does not handle
struct forgetful : counter {
  using protocol = coppice::protocol<bump, stray>;
};
actor_ref<forgetful> lists_what_it_does_not_handle(runtime& rt) { return spawn_actor(rt, props<forgetful>()); }

#elif CASE == 3
// refused: must list its messages
struct silent {
  static int handle(bump, context&) { return 1; }
};
actor_ref<silent> lists_nothing(runtime& rt) { return spawn_actor(rt, props<silent>()); }

#elif CASE == 4
// refused: this class has handlers of an actor
child_spec is_no_server() { return child<counter>(); }

#elif CASE == 5
// refused: this class has handlers of an actor
struct starter {
  using protocol = coppice::protocol<bump>;
  static int handle(bump) { return 1; }
  static void handle(started, context&) {}
};
void is_no_plain_process(runtime& rt) { (void)rt.spawn<starter>(); }

#elif CASE == 6
// refused: a handler for a lifecycle message is never called
struct eager : counter {
  using counter::handle;
  static void handle(started&, context&) {}
};
actor_ref<eager> takes_started_by_reference(runtime& rt) { return spawn_actor(rt, props<eager>()); }

#elif CASE == 7
// refused: the class's decide() is never called
struct judge : counter {
  static bool decide(const child_failure&) { return true; }
};
actor_ref<judge> decides_nothing(runtime& rt) { return spawn_actor(rt, props<judge>()); }

#elif CASE == 8
// refused: handlers of actors must not be coroutines
struct patient {
  using protocol = coppice::protocol<bump>;
  static task<int> handle(bump, context&);
};
actor_ref<patient> waits_in_a_handler(runtime& rt) { return spawn_actor(rt, props<patient>()); }

#elif CASE == 9
// refused: a rule comes after one for its base class
decider has_a_rule_that_is_never_reached() {
  return decide_by(directive::stop, on<std::exception>(directive::restart), on<std::logic_error>(directive::stop));
}

#elif CASE == 10
// refused: reply with a std::string
struct speaker {
  using protocol = coppice::protocol<stray>;
  static void handle(stray, context& me) { me.reply(static_cast<const char*>("yes")); }
};
actor_ref<speaker> answers_with_a_pointer(runtime& rt) { return spawn_actor(rt, props<speaker>()); }

#elif CASE == 11
// refused: the actor's class has no constructor for these arguments
props<counter> has_other_arguments() { return props<counter>(41, "x"); }

#elif CASE == 12
// refused: a handler for a lifecycle message is never called
struct reversed : counter {
  using counter::handle;
  static void handle(context&, started) {}
};
actor_ref<reversed> takes_the_context_first(runtime& rt) { return spawn_actor(rt, props<reversed>()); }

#elif CASE == 13
// refused: send a std::string
void sends_a_pointer(runtime& rt) { rt.send(pid{}, "text"); }

#else
#error "there is no such case"
#endif
