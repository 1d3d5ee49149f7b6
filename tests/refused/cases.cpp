// Code that must not compile, one case at a time (-D CASE=n), each with a part of the expected error. CASE=0 must
// compile. See check.py.
#include <memory>
#include <span>
#include <string_view>

#include <coppice/actor/router.hpp>
#include <coppice/behaviour/job.hpp>
#include <coppice/behaviour/named.hpp>
#include <coppice/behaviour/server.hpp>
#include <coppice/runtime/runtime.hpp>
#include <coppice/spec/child.hpp>

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

task<> ticker(self& me, int times);
struct tally {
  explicit tally(int) {}
  tally(self&, std::string) {}
  static int handle(bump) { return 1; }
};

#if CASE == 0
task<> takes_text(self& me, std::string text);
task<int> waits_for(self& me, const std::string& text);
struct fine {
  static int handle(const bump&) { return 1; }
  static void handle(stray&&, self&) {}
};
void uses_a_name(const named<fine>& to) {
  to.cast<stray>();
  (void)to.call<bump>();
}
void spawns_and_sends(runtime& rt, ref<fine> to) {
  rt.spawn(ticker, 3);
  rt.spawn(takes_text, "converted before spawn returns");
  (void)rt.spawn({.name = "ticker"}, ticker, 3);
  rt.spawn([](auto& me, auto n) -> task<> { return ticker(me, n); }, 3);
  rt.spawn<tally>(3);
  (void)rt.spawn<tally>({.name = "tally"}, "text");
  rt.run(ticker, 3);
  rt.cast<stray>(to);
  (void)rt.call(to.call<bump>());
  (void)child<tally>("text");
  (void)child(ticker, 3);
}
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

#elif CASE == 14
// refused: the handler takes this message by reference: take it by value, or by const&
struct greedy {
  static int handle(bump&) { return 1; }
};
void takes_the_message_by_reference(runtime& rt, ref<greedy> to) { (void)rt.call(to.call<bump>()); }

#elif CASE == 15
// refused: the handler of this message must return the reply that the message names
struct other {
  static std::string handle(bump) { return "1"; }
};
void returns_something_else(runtime& rt, ref<other> to) { (void)rt.call(to.call<bump>()); }

#elif CASE == 16
// refused: the class has no handler for this message: it needs a public member `handle`
class secret {
  static int handle(bump) { return 1; }
};
void hides_its_handler(runtime& rt, ref<secret> to) { (void)rt.call(to.call<bump>()); }

#elif CASE == 17
// refused: the class has no handler for this message: it needs a public member `handle`
struct misspelt {
  static int handel(bump) { return 1; }
};
task<> has_a_handler_of_another_name(self&, ref<misspelt> to) {
  const auto answer = co_await to.call<bump>();
  (void)answer;
}

#elif CASE == 18
// refused: the handler of this message returns nothing, but the message names a reply
struct mute {
  static void handle(bump) {}
};
void returns_nothing(runtime& rt, ref<mute> to) { (void)rt.call(to.call<bump>()); }

#elif CASE == 19
// refused: the handler of this message must return the reply that the message names
struct late {
  static task<> handle(bump);
};
void waits_and_returns_nothing(runtime& rt, ref<late> to) { (void)rt.call(to.call<bump>()); }

#elif CASE == 20
// refused: this message cannot be called, because it names no reply
struct keeper {
  static void handle(stray) {}
};
void calls_what_has_no_reply(runtime& rt, ref<keeper> to) { (void)rt.call(to.call<stray>()); }

#elif CASE == 21
// refused: the class has no handler for this message: it needs a public member `handle`
void casts_what_is_not_handled(runtime& rt, ref<tally> to) { rt.cast<stray>(to); }

#elif CASE == 22
// refused: the class has no handler for this message: it needs a public member `handle`
void casts_inside_a_process(ref<tally> to) { to.cast<stray>(); }

#elif CASE == 23
// refused: the body of a process cannot be called with these arguments
void has_an_argument_of_a_wrong_type(runtime& rt) { rt.spawn(ticker, "three"); }

#elif CASE == 24
// refused: the body of a process cannot be called with these arguments
void lacks_an_argument(self& me) { me.spawn_link(ticker); }

#elif CASE == 25
// refused: the body of a process must take a self& first
task<> selfless(int times);
void has_a_body_without_self(runtime& rt) { rt.spawn(selfless, 3); }

#elif CASE == 26
// refused: the body of a process must be a coroutine
void hurried(self&, int) {}
void has_a_body_that_is_no_task(runtime& rt) { rt.run(hurried, 3); }

#elif CASE == 27
// refused: the body of a process must not capture anything
void captures(runtime& rt, int n) {
  rt.spawn([n](self& me) { return ticker(me, n); });
}

#elif CASE == 28
// refused: the body of a process must take its arguments by value
task<> by_reference(self& me, const std::string& text);
void takes_a_reference(runtime& rt) { rt.spawn(by_reference, std::string{"text"}); }

#elif CASE == 29
// refused: the body of a process must own its arguments
task<> by_view(self& me, std::string_view text);
void takes_a_string_view(runtime& rt) { rt.spawn(by_view, std::string{"text"}); }

#elif CASE == 30
// refused: the body of a process must own its arguments
void takes_a_span(runtime& rt, std::vector<int> numbers) {
  rt.spawn([](self& me, std::span<const int> n) { return ticker(me, n[0]); }, numbers);
}

#elif CASE == 31
// refused: the arguments of a process are kept until it has made its object
void passes_a_string_view(runtime& rt, std::string_view text) { rt.spawn<tally>(text); }

#elif CASE == 32
// refused: the class has no public constructor for copies of these arguments
void has_no_such_constructor(self& me) { me.spawn_link<tally>(3, 4); }

#elif CASE == 33
// refused: the class has no public constructor for copies of these arguments
auto starts_without_a_constructor(self& me) { return start<tally>(me, 3, 4); }

#elif CASE == 34
// refused: the arguments of a child are kept and copied at every start
struct owner {
  explicit owner(std::unique_ptr<int>) {}
};
child_spec has_a_move_only_argument() { return child<owner>(std::make_unique<int>(3)); }

#elif CASE == 35
// refused: the arguments of a child are kept and copied at every start
task<> holds(self& me, std::unique_ptr<int> number);
child_spec has_a_body_with_a_move_only_argument() { return child(holds, std::make_unique<int>(3)); }

#elif CASE == 36
// refused: the body of a process cannot be called with these arguments
const std::vector<child_spec> has_a_wrong_child{child(ticker, "often")};

#elif CASE == 37
// refused: the arguments of a child are kept for its restarts
child_spec keeps_a_string_view(std::string_view text) { return child<tally>(text); }

#elif CASE == 38
// refused: there is no constructor of the child's type for these arguments
child_spec has_no_such_child() { return child<tally>(3, 4); }

#elif CASE == 39
// refused: a job that waits must own its arguments
task<int> counts(self& me, std::string_view text);
void has_a_job_with_a_view(self& me) { (void)async_job(me, counts, std::string{"text"}); }

#elif CASE == 40
// refused: the class has no handler for this message: it needs a public member `handle`
void casts_to_a_name(const named<tally>& to) { to.cast<stray>(); }

#elif CASE == 41
// refused: this message cannot be called, because it names no reply
void calls_a_name_without_a_reply(const named<tally>& to) { (void)to.call<stray>(); }

#elif CASE == 42
// refused: the handler of this message must return the reply that the message names
struct wordy {
  static std::string handle(bump) { return "one"; }
};
void calls_a_name_with_another_reply(const named<wordy>& to) { (void)to.call<bump>(); }

#elif CASE == 43
// refused: terminate() is never called: it must take a const exit_reason&, and may take a self& behind it
struct ends_quietly {
  static constexpr bool traps_exits = true;
  static void terminate();
};
void spawns_with_another_terminate(runtime& rt) { rt.spawn<ends_quietly>(); }

#elif CASE == 44
// refused: init() is never called: it must take nothing, or a self&
struct begins_with_a_number {
  static void init(int);
};
void has_a_child_with_another_init() { (void)child<begins_with_a_number>(); }

#elif CASE == 45
// refused: idle_after() is never called: it must be const, take nothing and return a duration
struct idles_for_a_number {
  static int idle_after();
};
void spawns_with_another_idle_after(runtime& rt) { rt.spawn<idles_for_a_number>(); }

#elif CASE == 46
// refused: handle_continue() is never called: it must take nothing, or a self&
struct continues_with_a_number {
  static void handle_continue(int);
};
void spawns_with_another_continue(runtime& rt) { rt.spawn<continues_with_a_number>(); }

#else
#error "there is no such case"
#endif
