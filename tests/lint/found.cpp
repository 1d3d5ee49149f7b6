// What coppice-lint finds. A comment names the rules that must be found on its line; see tools/lint/test_lint.py.
#include <map>
#include <mutex>

#include <coppice/coppice.hpp>

using namespace coppice;

#define CHECK_TRUE(x) \
  if (!(x)) throw 1

namespace {

struct greet {
  using reply = bool;
  std::string name;
};
struct entry {
  std::string key;
  int number = 0;
};
struct nested {
  entry inner;
  greet outer;
};
struct guarded {
  ~guarded() {}
  int number = 0;
};
task<bool> ready(self& me);
task<bool> store(self& me, entry e);
task<bool> keep(self& me, nested n);
task<bool> hold(self& me, guarded g);
task<std::string> text_of(self& me);
template <class F>
task<bool> with(self&, F) {
  co_return true;
}

// ---- awaits in places that g++ 12 miscompiles

task<> conditions(self& me, ref<entry> at) {
  if (co_await ready(me)) co_return;                  // finds: await-in-condition
  if (const bool b = co_await ready(me); b) {         // finds: await-in-condition
  } else if (co_await call<greet>(at.id(), "you")) {  // finds: await-in-condition
  }
  while (!co_await ready(me)) {  // finds: await-in-condition
  }
  do {
  } while (co_await ready(me));  // finds: await-in-condition
  switch (co_await ready(me)) {  // finds: await-in-condition
    default: break;
  }
  for (bool b = co_await ready(me); b;) {  // finds: await-in-condition
  }
  for (const char c : co_await text_of(me)) (void)c;  // finds: await-in-condition
  if constexpr (sizeof(int) == 4)
    if ((me.now() > time_point{}) && (co_await ready(me))) co_return;  // finds: await-in-condition
}

task<std::string> other_places(self& me, bool yes) {
  const std::string chosen = yes ? co_await text_of(me) : "";                 // finds: await-in-choice
  const std::string both = co_await text_of(me) + co_await text_of(me);       // finds: two-awaits
  const std::string picked = (co_await text_of(me)).empty() ? chosen : both;  // finds: await-in-choice
  CHECK_TRUE(co_await ready(me));                                             // finds: await-in-macro
  if (yes) throw co_await text_of(me);                                        // finds: await-in-throw
  co_return picked;
}

// ---- values that g++ 12 destroys twice

task<> values(self& me, std::string text) {
  co_await store(me, entry{.key = text});                        // finds: braces-in-await
  co_await store(me, {.key = text});                             // finds: braces-in-await
  co_await store(me, entry(text, 1));                            // finds: aggregate-in-await
  co_await store(me, entry{});                                   // finds: braces-in-await
  co_await store(me, ::entry(text));                             // finds: aggregate-in-await
  co_await hold(me, guarded{.number = 1});                       // finds: braces-in-await
  co_await keep(me, nested(entry{text, 2},                       // finds: aggregate-in-await braces-in-await
                           greet{text}));                        // finds: braces-in-await
  co_await with(me, std::array<std::string, 2>{text, text});     // finds: braces-in-await
  const entry stored{.key = co_await text_of(me), .number = 1};  // finds: braces-in-await
  co_await with(me, [text] { return text; });                    // finds: capture-in-await
  co_await with(me, [=] { return text; });                       // finds: capture-in-await
  co_await with(me,
                [&me, copy = text]() mutable { copy += std::to_string(me.id().index()); });  // finds: capture-in-await
  co_await with(me, std::function<int()>([text] { return 1; }));                             // finds: capture-in-await
  if (text.empty()) co_await store(me, entry{text, 1});                                      // finds: braces-in-await
  (void)stored;
}

// ---- coroutines that outlive what they refer to

task<> borrows(self& me, std::string_view text);   // finds: view-parameter
task<> refers(self& me, const std::string& text);  // finds: view-parameter
task<> points(self& me, const char* text,          // finds: pointer-parameter
              std::vector<int>* numbers) {         // finds: pointer-parameter
  (void)text, (void)numbers;
  co_await me.yield();
}
task<> sees(self& me, std::span<const int> numbers);  // finds: view-parameter

template <class Runtime>
void spawns(Runtime& rt, self& me, std::string text, std::vector<int> numbers) {
  rt.spawn(borrows, text);
  me.spawn_link(&refers, text);
  me.spawn({.name = "points"}, points, text.c_str(), &numbers);
  (void)child(sees, numbers);
  rt.spawn(
      [](self& mine, int* n) -> task<> {  // finds: pointer-parameter
        ++*n;
        co_await mine.yield();
      },
      &numbers[0]);
}

auto captures(self& me, std::string text) {
  const auto by_value = [text](self& mine) -> task<> {  // finds: capturing-coroutine
    mine.label(text);
    co_await mine.yield();
  };
  const auto by_reference = [&]() -> task<> { co_await me.yield(); };  // finds: capturing-coroutine
  return std::pair{by_value, by_reference};
}

task<> locks(self& me, std::mutex* mutex) {
  const std::lock_guard held{*mutex};  // finds: lock-across-await
  if (me.parent()) {
    co_await me.yield();
  }
}

// ---- members that are not called when one expects it

struct closer {
  static void handle(greet) {}
  void terminate(const exit_reason& why);  // finds: terminate-without-trap
};
child_spec stops() { return child<closer>(); }

// ---- comments that allow nothing

task<> allows(self& me) {
  co_await me.yield();  // finds: unused-allow // coppice-lint: allow two-awaits: there is one
  // The next one gives no reason. finds-below: unused-allow
  // coppice-lint: allow two-awaits
  co_await me.yield();
  co_await me.yield();  // finds: unused-allow // coppice-lint: allow everything: because
}

}  // namespace
