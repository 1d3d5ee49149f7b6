// What coppice-lint leaves alone; see tools/lint/test_lint.py.
#include <mutex>
#include <set>

#include <coppice/coppice.hpp>

using namespace coppice;
using namespace std::chrono_literals;

namespace {

struct entry {
  std::string key;
  int number = 0;
};
struct made {  // has a constructor
  explicit made(std::string k) : key(std::move(k)) {}
  std::string key;
};
class hidden {  // not an aggregate either
 public:
  std::string key() const { return key_; }

 private:
  std::string key_;
};
enum class colour { red, green };
struct numbers {  // nothing to destroy
  int a = 0;
  std::optional<double> b;
  std::chrono::milliseconds c{1};
  pid d;
  ref<entry> e;
  const char* f = "";
  colour g = colour::red;
};
struct more_numbers {
  numbers first;
  std::array<std::uint32_t, 3> others{};
};
namespace tools {
task<bool> entry(self& me, std::string key);  // a function that has the name of a class elsewhere
}
entry make_entry(std::string key) { return entry{.key = std::move(key)}; }
task<bool> ready(self& me);
task<bool> store(self& me, entry e);
task<std::string> text_of(self& me);
template <class T>
task<bool> keep(self&, T) {
  co_return true;
}

task<bool> awaits(self& me, std::string text, ref<entry> at, bool yes) {
  const bool is_ready = co_await ready(me);
  if (!is_ready) co_return false;
  entry e{.key = text};
  co_await store(me, std::move(e));
  co_await store(me, make_entry(text));
  co_await store(me, entry(std::move(e)));
  co_await keep(me, made{text});
  co_await keep(me, made(text));
  co_await keep(me, hidden{});
  co_await keep(me, numbers{.a = 1});
  co_await keep(me, numbers(1));
  co_await keep(me, more_numbers{numbers{1}});
  co_await keep(me, std::optional<std::string>{text});
  co_await keep(me, std::pair<std::string, int>{text, 1});
  co_await me.sleep(std::chrono::milliseconds{5});
  co_await keep(me, [&] { return text; });
  co_await keep(me, [&text, &yes] { return yes ? text : ""; });
  co_await keep(me, [](int n) { return entry{.key = "inside", .number = n}; });
  const auto letter = co_await me.receive<entry, numbers>(5s);
  for (const int n : std::set<int>{1, 2}) co_await keep(me, n);
  for (const auto& piece : {text, text}) co_await keep(me, piece);
  if (entry other{text, 1}; other.number == 1) co_await ready(me);
  if (yes ? text.empty() : is_ready) co_await ready(me);
  const auto size = (co_await text_of(me)).size();
  // await in words: if (co_await ready(me)) { entry{1} }
  const char* quoted = "if (co_await ready(me))";
  me.send(at.id(), entry{text, static_cast<int>(size)});
  co_return letter.index() == 0 && quoted != nullptr;
}

// A pointer to a runtime, to a function and to text that is only awaited.
task<> stays(self& me, runtime* rt, task<> (*next)(self&), int n = 3 * 2);
task<int> is_awaited(self& me, const std::string& text, std::string_view view, int* into);
task<> owns(self& me, std::string text, std::shared_ptr<int> number);
// coppice-lint: allow pointer-parameter: both live as long as the program
task<> points(self& me, int* first, int* second);
task<> reads(self& me, int* into);  // coppice-lint: allow pointer-parameter: the same

void spawns(runtime& rt, self& me, int* number) {
  rt.spawn(stays, &rt, nullptr, 1);
  me.spawn_link(owns, "text", std::make_shared<int>(3));
  rt.spawn(points, number, number);
  rt.run(reads, number);
  (void)child(reads, number);
}

auto lambdas(std::string text) {
  const auto plain = [text](self& me) { return std::to_string(me.id().index()) + text; };
  const auto waits = [](self& me) -> task<> { co_await me.yield(); };
  return std::pair{plain, waits};
}

task<> locks(self& me, std::mutex* mutex) {
  {
    const std::lock_guard held{*mutex};
    me.label("held");
  }
  co_await me.yield();
  std::unique_lock held{*mutex};
  held.unlock();
  co_await me.yield();
}

struct closer {
  static constexpr bool traps_exits = true;
  static void handle(entry) {}
  void terminate(const exit_reason& why);
};
struct listener {  // not a server: an event bus calls its terminate
  static void handle(const entry&) {}
  void terminate(const exit_reason& why);
};
child_spec stops() { return child<closer>(); }

}  // namespace
