// Values built inside an awaiting expression.
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "probe.hpp"

namespace {

struct message {  // an aggregate with a member that has a destructor
  std::string key;
  int number = 0;
};
struct defaulted_message {
  std::string key = text;
};
struct plain_message {
  int key = 0;
};
struct box {  // not an aggregate
  explicit box(message m) : inside(std::move(m)) {}
  message inside;
};
struct with_constructor {
  explicit with_constructor(std::string k) : key(std::move(k)) {}
  std::string key;
};
template <class F>
struct handler {
  explicit handler(F f) : call(std::move(f)) {}
  F call;
};

message make_message() { return message{.key = text}; }
task<std::string> key_of(message m) { co_return m.key; }
task<std::string> key_of_defaulted(defaulted_message m) { co_return m.key; }
task<std::string> key_of_const_ref(const message& m) { co_return m.key; }
task<std::string> key_of_rvalue(message&& m) { co_return m.key; }
task<std::string> key_of_box(box b) { co_return b.inside.key; }
task<std::string> plain_function(message m) { return key_of(std::move(m)); }
task<std::string> give_text() { co_return text; }
task<message> give_message() { co_return make_message(); }
template <class T>
task<std::string> swallow(T value) {
  (void)value;
  co_return text;
}
template <class F>
task<std::string> call(F function) {
  co_return function();
}
template <class M, class... Args>
task<std::string> send(Args&&... args) {  // the library builds the message: the form our API offers
  return key_of(M{std::forward<Args>(args)...});
}

task<std::string> aggregate() { co_return co_await key_of(message{.key = text}); }
const probe p01{"aggregate", gives_text<aggregate>};
task<std::string> aggregate_bare_braces() { co_return co_await key_of({.key = text}); }
const probe p02{"aggregate_bare_braces", gives_text<aggregate_bare_braces>};
task<std::string> aggregate_parentheses() { co_return co_await key_of(message(text, 1)); }
const probe p03{"aggregate_parentheses", gives_text<aggregate_parentheses>};
task<std::string> aggregate_to_plain_function() { co_return co_await plain_function(message{.key = text}); }
const probe p04{"aggregate_to_plain_function", gives_text<aggregate_to_plain_function>};
task<std::string> aggregate_to_const_ref() { co_return co_await key_of_const_ref(message{.key = text}); }
const probe p05{"aggregate_to_const_ref", gives_text<aggregate_to_const_ref>};
task<std::string> aggregate_to_rvalue_ref() { co_return co_await key_of_rvalue(message{.key = text}); }
const probe p06{"aggregate_to_rvalue_ref", gives_text<aggregate_to_rvalue_ref>};
task<std::string> aggregate_in_box() { co_return co_await key_of_box(box{message{.key = text}}); }
const probe p07{"aggregate_in_box", gives_text<aggregate_in_box>};
task<std::string> aggregate_in_make_shared() {
  co_return co_await swallow(std::make_shared<message>(message{.key = text}));
}
const probe p08{"aggregate_in_make_shared", gives_text<aggregate_in_make_shared>};
task<std::string> array_of_strings() { co_return co_await swallow(std::array<std::string, 2>{text, text}); }
const probe p09{"array_of_strings", gives_text<array_of_strings>};
task<std::string> aggregate_empty_braces() { co_return co_await key_of_defaulted(defaulted_message{}); }
const probe p14{"aggregate_empty_braces", gives_text<aggregate_empty_braces>};
task<std::string> aggregate_around_await() {
  message m{.key = co_await give_text()};
  co_return m.key;
}
const probe p15{"aggregate_around_await", gives_text<aggregate_around_await>};
task<std::string> await_in_throw() {
  try {
    throw co_await give_text();
  } catch (const std::string& thrown) {
    co_return thrown;
  }
}
const probe p16{"await_in_throw", gives_text<await_in_throw>};

task<std::string> lambda_by_value() {
  std::string copy = text;
  co_return co_await call([copy] { return copy; });
}
const probe p10{"lambda_by_value", gives_text<lambda_by_value>};
task<std::string> lambda_by_value_wrapped() {
  std::string copy = text;
  co_return co_await swallow(handler([copy] { return copy; }));
}
const probe p11{"lambda_by_value_wrapped", gives_text<lambda_by_value_wrapped>};
task<std::string> lambda_by_value_in_function() {
  co_return co_await call(std::function<std::string()>([copy = text] { return copy; }));
}
const probe p12{"lambda_by_value_in_function", gives_text<lambda_by_value_in_function>};

task<std::string> conditional() {
  bool yes = true;
  co_return yes ? co_await swallow(1) : co_await swallow(2);
}
const probe p13{"conditional", gives_text<conditional>};

// The forms we use instead.
task<std::string> built_first_then_moved() {
  message m{.key = text};
  auto key = co_await key_of(std::move(m));
  co_return key;
}
const probe p20{"built_first_then_moved", gives_text<built_first_then_moved>};
task<std::string> made_by_a_function() { co_return co_await key_of(make_message()); }
const probe p21{"made_by_a_function", gives_text<made_by_a_function>};
task<std::string> made_by_the_callee() { co_return co_await send<message>(text); }
const probe p22{"made_by_the_callee", gives_text<made_by_the_callee>};
task<std::string> type_with_constructor() { co_return co_await swallow(with_constructor{text}); }
const probe p23{"type_with_constructor", gives_text<type_with_constructor>};
task<std::string> trivial_aggregate() { co_return co_await swallow(plain_message{.key = 3}); }
const probe p24{"trivial_aggregate", gives_text<trivial_aggregate>};
task<std::string> lambda_by_reference() {
  std::string local = text;
  co_return co_await call([&] { return local; });
}
const probe p25{"lambda_by_reference", gives_text<lambda_by_reference>};
task<std::string> standard_temporaries() {
  auto a = co_await swallow(std::optional<std::string>{text});
  auto b = co_await swallow(std::variant<int, std::string>{text});
  auto c = co_await swallow(std::pair<std::string, int>{text, 1});
  auto d = co_await swallow(std::tuple<std::string, int>{text, 1});
  auto e = co_await swallow(std::make_unique<std::string>(text));
  auto f = co_await swallow(text + "!");
  co_return a == b&& c == d&& e == f ? a : "";
}
const probe p26{"standard_temporaries", gives_text<standard_temporaries>};
task<std::string> task_made_first() {
  auto later = key_of(message{.key = text});
  auto key = co_await std::move(later);
  co_return key;
}
const probe p27{"task_made_first", gives_text<task_made_first>};
task<std::string> member_of_result() { co_return (co_await give_message()).key; }
const probe p28{"member_of_result", gives_text<member_of_result>};
task<std::string> structured_binding() {
  auto [key, number] = co_await give_message();
  co_return number == 0 ? key : "";
}
const probe p29{"structured_binding", gives_text<structured_binding>};

}  // namespace
