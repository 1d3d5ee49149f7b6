// What an exit reason says about the exception that ended the process.
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "support.hpp"

namespace {

using namespace coppice;

/// The reason of a process whose code is `F`.
template <class F>
exit_reason reason_of(F) {
  runtime rt{quiet()};
  return rt.run(+[](self&) -> task<> {
    F{}();
    co_return;
  });
}

struct not_an_exception {};
struct without_text : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return nullptr; }
};

TEST(failure_text, of_a_string_a_number_or_an_error_code_is_its_value) {
  EXPECT_EQ(reason_of([] { throw "text"; }).to_string(), "error: char const*: text");
  EXPECT_EQ(reason_of([] { throw std::string{"text"}; }).to_string(), "error: std::string: text");
  EXPECT_EQ(reason_of([] { throw 42; }).to_string(), "error: int: 42");
  EXPECT_EQ(reason_of([] { throw 42UL; }).to_string(), "error: unsigned long: 42");
  EXPECT_EQ(reason_of([] { throw true; }).to_string(), "error: bool: true");
  EXPECT_EQ(reason_of([] { throw 'x'; }).to_string(), "error: char: x");
  EXPECT_EQ(reason_of([] { throw std::make_error_code(std::errc::file_exists); }).to_string(),
            "error: std::error_code: File exists");
}

TEST(failure_text, of_another_type_is_its_name) {
  EXPECT_TRUE(reason_of([] { throw not_an_exception{}; }).to_string().ends_with("::not_an_exception"));
  EXPECT_TRUE(reason_of([] { throw nullptr; }).to_string().starts_with("error: decltype(nullptr)"));
  EXPECT_TRUE(reason_of([] { throw without_text{}; }).to_string().ends_with("::without_text"));
}

TEST(failure_text, names_types_of_the_standard_library_as_a_program_does) {
  const exit_reason why =
      reason_of([] { throw std::filesystem::filesystem_error{"no", std::make_error_code(std::errc::file_exists)}; });
  EXPECT_EQ(why.exception_type(), "std::filesystem::filesystem_error");
  EXPECT_EQ(reason_of([] { throw std::ios_base::failure{"no"}; }).exception_type(), "std::ios_base::failure");
}

[[noreturn]] void fail_for(int causes) {
  if (causes == 0) throw std::invalid_argument{"bottom"};
  try {
    fail_for(causes - 1);
  } catch (...) {
    std::throw_with_nested(std::runtime_error{"level " + std::to_string(causes)});
  }
}

TEST(failure_text, has_the_causes_of_a_nested_exception_from_the_outside_in) {
  const exit_reason why = reason_of([] { fail_for(2); });
  EXPECT_EQ(why.exception_type(), "std::runtime_error");
  EXPECT_EQ(why.text(), "level 2; caused by std::runtime_error: level 1; caused by std::invalid_argument: bottom");
}

TEST(failure_text, has_a_cause_that_is_not_an_exception) {
  const exit_reason why = reason_of([] {
    try {
      throw 7;
    } catch (...) {
      std::throw_with_nested(std::runtime_error{"outer"});
    }
  });
  EXPECT_EQ(why.text(), "outer; caused by int: 7");
}

/// Throws `outer` with `inner` nested in it.
template <class Inner, class Outer>
[[noreturn]] void throw_nested(Inner inner, Outer outer) {
  try {
    throw inner;
  } catch (...) {
    std::throw_with_nested(outer);
  }
}

TEST(failure_text, of_another_type_has_the_causes_that_are_nested_in_it) {
  const exit_reason text = reason_of([] { throw_nested(std::runtime_error{"inner"}, std::string{"outer"}); });
  EXPECT_EQ(text.to_string(), "error: std::string: outer; caused by std::runtime_error: inner");
  const exit_reason no_text = reason_of([] { throw_nested(7, not_an_exception{}); });
  EXPECT_TRUE(no_text.exception_type().ends_with("::not_an_exception")) << no_text.exception_type();
  EXPECT_EQ(no_text.text(), "caused by int: 7");
}

TEST(failure_text, has_the_causes_behind_a_cause_that_is_not_an_exception) {
  const exit_reason why = reason_of([] {
    try {
      throw_nested(7, std::string{"middle"});
    } catch (...) {
      std::throw_with_nested(std::runtime_error{"outer"});
    }
  });
  EXPECT_EQ(why.text(), "outer; caused by std::string: middle; caused by int: 7");
}

TEST(failure_text, has_at_most_ten_causes) {
  const exit_reason why = reason_of([] { fail_for(30); });
  EXPECT_TRUE(why.text().ends_with("level 20; and more causes")) << why.text();
}

TEST(failure_text, of_an_exception_that_could_nest_but_does_not_is_its_own) {
  EXPECT_EQ(reason_of([] { std::throw_with_nested(std::runtime_error{"alone"}); }).text(), "alone");
}

TEST(failure_text, does_not_mix_up_types_that_fail_in_turn) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(reason_of([] { throw std::runtime_error{"a"}; }).to_string(), "error: std::runtime_error: a");
    EXPECT_EQ(reason_of([] { fail_for(1); }).text(), "level 1; caused by std::invalid_argument: bottom");
  }
}

}  // namespace
