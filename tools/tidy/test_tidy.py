#!/usr/bin/env python3
"""Tests of the rules: what they find, and what they leave alone."""

import sys
import textwrap
import unittest

sys.dont_write_bytecode = True

import tidy  # first: it finds the modules of coppice-lint
import cxx
import rules

LAYERS = "base:\nenv: base\nplatform: env\nruntime: env\nsim: runtime\n"
CMAKE = "coppice_library(base)\ncoppice_library(env DEPENDS base)\ncoppice_library(platform)\ncoppice_library(runtime)\n"
CXX23 = "#pragma once\n#include <expected>  // std::expected\n"


def findings(files, rule=None):
    """What the rules say about a tree of the given files, as "path:line: rule"."""
    tree = {"tools/tidy/layers.txt": LAYERS, "CMakeLists.txt": CMAKE, rules.CXX23_FILE: CXX23} | files
    for library in ("base", "env", "platform", "runtime"):
        names = " ".join(path.rsplit("/", 1)[-1] for path in tree)
        tree.setdefault(f"src/{library}/README.md", names if rule != "readme" else "")
    places = [": ".join(finding.split(": ")[:2]) for finding in tidy.check(tidy.Tree(tree))]
    return [place for place in places if rule is None or place.endswith(": " + rule)]


def header(text=""):
    return "#pragma once\n" + text


def awaits(body):
    """The lines the one-await rule names in the body of a coroutine."""
    text = "task<> body(self& me) {\n" + textwrap.dedent(body).strip("\n") + "\n}\n"
    return [line - 1 for line, _ in rules.awaits_in(cxx.parse(text))]


def functions(text):
    return [(b.name, b.end_line - b.line + 1) for b in cxx.parse(text).brackets if b.kind == "function"]


class Lexing(unittest.TestCase):
    def test_comments_and_literals_do_not_count(self):
        text = 'int a = 1\'000; // "co_await\nauto s = "}{ // no comment"; /* { */ char c = \'{\';\n'
        code = cxx.without_comments_and_literals(text)
        self.assertNotIn("{", code)
        self.assertNotIn("}", code)
        self.assertIn("char c", code)
        self.assertEqual(len(code), len(text))

    def test_raw_strings_do_not_count(self):
        code = cxx.without_comments_and_literals('auto s = R"x({ " )" )x"; int n;')
        self.assertNotIn("{", code)
        self.assertIn("int n;", code)

    def test_preprocessor_lines_do_not_count(self):
        self.assertEqual(cxx.parse("#define OPEN { \\\n  {\nint n;\n").brackets, [])


class Quotes(unittest.TestCase):
    page = "<!-- quotes tests/base/a_test.cpp -->\n```cpp\nint f(int n) {\n  return n;\n}\n```\n"

    def test_what_is_quoted_stands_there_blanks_aside(self):
        code = "namespace x {\n  int f(int n) { return n; }\n}\n"
        self.assertEqual(findings({"docs/a.md": self.page, "tests/base/a_test.cpp": code}, "quotes"), [])

    def test_what_has_changed_or_gone_is_found(self):
        code = "int f(int n) { return n + 1; }\n"
        self.assertEqual(findings({"docs/a.md": self.page, "tests/base/a_test.cpp": code}), ["docs/a.md:1: quotes"])
        self.assertEqual(findings({"docs/a.md": "\n" + self.page}), ["docs/a.md:2: quotes"])


    def test_what_is_not_quoted_at_all_is_found(self):
        page = "\n```cpp\nint n;\n```\n\n```cpp avoid\nint n\n```\n"
        self.assertEqual(findings({"docs/a.md": page}), ["docs/a.md:2: quotes"])

    def test_a_page_may_leave_out_lines(self):
        page = "<!-- quotes tests/base/a_test.cpp -->\n```cpp\nint a;\n...\nint c;\n```\n"
        self.assertEqual(findings({"docs/a.md": page, "tests/base/a_test.cpp": "int a;\nint b;\nint c;\n"}), [])
        self.assertEqual(findings({"docs/a.md": page, "tests/base/a_test.cpp": "int c;\nint a;\n"}),
                         ["docs/a.md:1: quotes"])


class Readmes(unittest.TestCase):
    files = {"src/base/a.cpp": "", "include/coppice/base/b.hpp": header()}

    def test_every_library_has_one_that_names_all_its_files(self):
        good = self.files | {"src/base/README.md": "`a.cpp`, `b.hpp`, `cxx23.hpp`"}
        self.assertEqual(findings(good, "readme"), [])
        self.assertEqual(findings(self.files, "readme"), ["src/base/README.md:1: readme"] * 3)

    def test_a_file_that_is_gone_is_found(self):
        page = {"src/base/README.md": "`cxx23.hpp`\n\n`gone.cpp`"}
        self.assertEqual(findings(page, "readme"), ["src/base/README.md:3: readme"])


class Links(unittest.TestCase):
    def test_links_to_pages_folders_and_headings_resolve(self):
        pages = {"docs/a.md": "# One, two `three`\n[b](guide/b.md), [c](#one-two-three), [d](guide), [e](https://example.org)\n",
                 "docs/guide/b.md": "## Mail\n## Mail\n[a](../a.md#one-two-three) [self](#mail-1) ![svg](../a.md)\n"}
        self.assertEqual(findings(pages), [])

    def test_links_that_lead_nowhere_are_found(self):
        pages = {"docs/a.md": "[b](b.md)\n[c](#none)\n`[d](d.md)`\n```\n[e](e.md)\n# none\n```\n"}
        self.assertEqual(findings(pages), ["docs/a.md:1: links", "docs/a.md:2: links"])


class Columns(unittest.TestCase):
    long = "word " * 24

    def test_prose_wraps_at_120_columns(self):
        link = f"[a](https://example.org/{'b' * 120})"
        page = f"{self.long}\n{self.long}x\n- {self.long}\n{link} and more\n`{self.long}` and more\n"
        self.assertEqual(findings({"docs/a.md": page}), [f"docs/a.md:{n}: columns" for n in (2, 3, 4, 5)])

    def test_tables_blocks_headings_and_remarks_may_be_longer(self):
        page = f"## {self.long * 2}\n| {self.long * 2} |\n```\n{self.long * 2}\n```\n<!-- {self.long * 2} -->\n"
        self.assertEqual(findings({"docs/a.md": page}), [])

    def test_links_and_code_alone_on_a_line_may_be_longer(self):
        link = f"[a b c](https://example.org/{'b' * 120})"
        page = f"{link}\n- {link}.\n![two words](https://example.org/{'b' * 120})\n`{self.long * 2}`,\n"
        self.assertEqual(findings({"docs/a.md": page}), [])

    def test_code_of_programs_is_left_to_its_formatter(self):
        self.assertEqual(findings({"src/base/a.cpp": f"// {self.long * 2}\n"}), [])


class NamedTests(unittest.TestCase):
    def test_tests_that_are_not_there_are_found(self):
        page = "`suite.name`: `a.b`, `a.*`,\n`a.c`, `d.*`, `tests/x.cpp`\n"
        tests = "TEST(a, b) {}\nTEST_F(e, f) {}\n"
        self.assertEqual(findings({"docs/actor-facts.md": page, "tests/base/a_test.cpp": tests}),
                         ["docs/actor-facts.md:2: named-tests"] * 2)


class Prose(unittest.TestCase):
    def test_numbers_of_other_documents_are_found(self):
        code = "// A rule (fact 56).\nint a;\n// see T22\nstruct T1 {};\n"
        self.assertEqual(findings({"src/base/a.cpp": code}), ["src/base/a.cpp:1: citations", "src/base/a.cpp:3: citations"])
        self.assertEqual(findings({"docs/a.md": "In fact, T-shirts; `T22`.\n"}), [])

    def test_words_of_the_dialect_are_found_in_comments_and_pages(self):
        code = "// It hears\n// of it, which\n// is no error.\nint hears = 1;  // \"lets go\"\n"
        self.assertEqual(findings({"src/base/a.cpp": code}), [f"src/base/a.cpp:{n}: plain-words" for n in (1, 4, 3)])
        self.assertEqual(findings({"docs/a.md": "There is no error, and it is no longer `just so`.\n"}), [])
        self.assertEqual(findings({"docs/a.md": "It comes\nto its end.\n"}), ["docs/a.md:1: plain-words"])
        self.assertEqual(findings({"docs/a.md": "It comes to its end.\n"}), ["docs/a.md:1: plain-words"])

    def test_words_of_the_dialect_are_found_in_names_of_tests(self):
        tests = "int hears;\nTEST(watch, a_parent_hears_of_it) {}\nTEST_F(watch, is_no_longer_there) {}\n"
        self.assertEqual(findings({"tests/base/a_test.cpp": tests}), ["tests/base/a_test.cpp:2: plain-words"])


class PublicDetail(unittest.TestCase):
    def found(self, text, more=None):
        places = findings({"include/coppice/base/a.hpp": header(text)} | (more or {}))
        return [place.split("public-detail ")[-1] for place in places]

    def test_types_in_signatures_and_aliases_are_found(self):
        self.assertEqual(self.found("namespace coppice {\ndetail::answer call(int);\nvoid f(detail::part p);\n"
                                    "using x = detail::secret;\nstruct s {\n  detail::inner g() const;\n};\n}\n"),
                         ["answer", "part", "secret", "inner"])

    def test_bodies_private_parts_constraints_and_detail_itself_are_not(self):
        self.assertEqual(self.found(
            "namespace coppice {\nnamespace detail {\nvoid f(detail::part);\n}\nint g() { return detail::part{}.n; }\n"
            "class c {\n  detail::part h();\n public:\n  int k();\n private:\n  void m(detail::part);\n};\n"
            "template <class T>\n  requires detail::good<T>\nvoid n(T);\nfriend void o(detail::part);\n}\n"), [])

    def test_concepts_are_not_types(self):
        more = {"include/coppice/base/detail/b.hpp": header("template <class T>\nconcept good = true;\n")}
        self.assertEqual(self.found("template <detail::good T>\nvoid f(T);\n", more), [])

    def test_listed_types_are_left_alone(self):
        more = {tidy.PUBLIC_TYPES: "# why\npart other\n"}
        self.assertEqual(self.found("detail::part f();\n", more), [])
        self.assertEqual(self.found("detail::why f();\n", more), ["why"])


class FunctionLength(unittest.TestCase):
    def test_functions_are_told_from_other_braces(self):
        text = """\
namespace a::b {
enum class color : int { red, green };
template <class T> requires (sizeof(T) > 1) struct box final : base<T> {
  explicit box(T t) : base<T>{t}, value{std::move(t)} {
    use(value);
  }
  box& operator=(const box& other) noexcept {
    return *this;
  }
  auto get() const -> std::pair<int, T> { return {1, value}; }
  T value{};
};
template <class T>
concept good = requires(T t) { t.run(); } && requires { typename T::type; };
inline constexpr int table[] = {1, 2};
void f(int n) requires good<int> {
  if (n) [[unlikely]] { g(); } else if constexpr (true) { h(); }
  for (auto [a, b] : c) { v.push_back({a, b}); }
  switch (n) { case 1: { break; } default: { break; } }
  struct local { int n; void m() { k(); } };
  auto x = [&]<class U>(U u) mutable -> int { return u; };
  if (n) throw error{"text"};
}
}  // namespace a::b
TEST(suite, name) {
  EXPECT_EQ(1, 1);
}
"""
        self.assertEqual(functions(text), [("box", 3), ("=", 3), ("get", 1), ("f", 8), ("m", 1), ("TEST", 3)])

    def test_a_long_function_is_found_and_a_short_one_is_not(self):
        body = lambda n: "void f() {\n" + "  g();\n" * n + "}\n"
        name = "function-length f"
        self.assertEqual(findings({"src/base/a.cpp": body(68)}, name), [])
        self.assertEqual(findings({"src/base/a.cpp": body(69)}, name), ["src/base/a.cpp:1: " + name])

    def test_a_long_class_is_not_a_long_function(self):
        text = "struct s {\n" + "  void f() {}\n" * 100 + "};\n"
        self.assertEqual(findings({"src/base/a.cpp": text}), [])

    def test_a_lambda_counts_with_the_function_around_it(self):
        text = "void f() {\n  g([&] {\n" + "    h();\n" * 70 + "  });\n}\n"
        self.assertEqual(findings({"src/base/a.cpp": text}), ["src/base/a.cpp:1: function-length f"])

    def test_a_long_file_is_found(self):
        self.assertEqual(findings({"src/base/a.cpp": "int n;\n" * 600}), [])
        self.assertEqual(findings({"src/base/a.cpp": "int n;\n" * 601}), ["src/base/a.cpp:601: file-length"])


class OneAwait(unittest.TestCase):
    def test_what_is_safe_is_left_alone(self):
        self.assertEqual(awaits("""
            message m{.key = text};
            const auto reply = co_await ref.call<put>(std::move(m), 5s);
            auto [a, b] = co_await give_two();
            auto& [c, d] = co_await give_two();
            co_await me.receive([&](hello& h) { use(h{1}); }, [this] { go(); });
            co_await for_ever{};
            for (int i = 0; i < 3; ++i) co_await tick();
            if (ready) co_await tick();
            if (ready) { co_await tick(); } else { co_await tock(); }
            do { co_await tick(); } while (more);
            auto later = [](self& other) -> task<> { co_await other.tick(); };
            const int n = co_await count(a ? 1 : 2);
            values[co_await index()] = 3;
            co_return co_await last();
            """), [])

    def test_two_awaits_in_one_statement(self):
        self.assertEqual(awaits("co_return co_await f() + co_await g();"), [1])
        self.assertEqual(awaits("co_await f(co_await g());"), [1])
        self.assertEqual(awaits("auto a = co_await f();\nauto b = co_await g();"), [])

    def test_awaits_in_conditions(self):
        for head in ["if (co_await f())", "if (int n = co_await f(); n)", "while ((co_await f()).more)", "switch (co_await f())",
                     "for (auto& x : co_await f())", "if constexpr (co_await f())"]:
            self.assertEqual(awaits(head + " {\n}"), [1], head)
        self.assertEqual(awaits("do {\n} while (co_await f());"), [2])

    def test_awaits_in_the_conditional_operator(self):
        self.assertEqual(awaits("auto x = yes ? co_await f() : none;"), [1])
        self.assertEqual(awaits("auto x = g(co_await f() ? 1 : 2);"), [1])
        self.assertEqual(awaits("auto x = yes ? g(co_await f()) : none;"), [1])

    def test_awaits_in_macros(self):
        self.assertEqual(awaits("EXPECT_EQ(co_await f(), 1);"), [1])

    def test_values_in_braces(self):
        self.assertEqual(awaits("co_await f(message{.key = text});"), [1])
        self.assertEqual(awaits("co_await f({.key = text});"), [1])
        self.assertEqual(awaits("co_await f(1,\n  std::vector<std::string>{a, b});"), [2])
        self.assertEqual(awaits("if (ready) co_await f(message{text});"), [1])
        self.assertEqual(awaits("co_await (f(message{text}));"), [1])

    def test_captures_by_value(self):
        self.assertEqual(awaits("co_await f([text] { g(); });"), [1])
        self.assertEqual(awaits("co_await f([&, copy = text](int n) { g(); });"), [1])
        self.assertEqual(awaits("co_await f([=] { g(); });"), [1])
        self.assertEqual(awaits("co_await f([*this] { g(); });"), [1])
        self.assertEqual(awaits("co_await f([&text, this] { g(); }, 1);"), [])

    def test_a_lambda_coroutine_has_statements_of_its_own(self):
        self.assertEqual(awaits("spawn([&]() -> task<> {\n  co_await f();\n  co_await g(m{1});\n});"), [3])

    def test_code_in_documents_is_held_to_it(self):
        text = "# Title\n\n```cpp\nint n;\nco_await f(message{text});\n```\n\n```cpp avoid\nco_await f(message{text});\n```\n"
        self.assertEqual(findings({"docs/guide.md": text}, "one-await"), ["docs/guide.md:5: one-await"])

    def test_the_probes_of_the_compilers_are_exempt(self):
        self.assertEqual(findings({"tests/compiler/a.cpp": "task<> f() { co_await g(m{1}); }\n"}), [])


class Layers(unittest.TestCase):
    def test_downwards_is_allowed_also_over_several_steps(self):
        self.assertEqual(findings({
            "include/coppice/runtime/a.hpp": header("#include <coppice/base/b.hpp>\n#include <coppice/env/c.hpp>\n"),
            "include/coppice/coppice.hpp": header("#include <coppice/runtime/a.hpp>\n"),
            "src/runtime/a.cpp": '#include "internal/x.hpp"\n#include "runtime/internal/x.hpp"\n',
            "src/runtime/internal/x.hpp": header("#include <vector>\n"),
        }), [])

    def test_upwards_and_sideways_are_not(self):
        self.assertEqual(findings({
            "include/coppice/env/a.hpp": header("\n#include <coppice/runtime/b.hpp>\n"),
            "src/runtime/a.cpp": "#include <coppice/platform/real.hpp>\n",
            "src/env/a.cpp": '#include "coppice/coppice.hpp"\n',
        }), ["include/coppice/env/a.hpp:3: layers", "src/runtime/a.cpp:1: layers", "src/env/a.cpp:1: layers"])

    def test_tests_may_include_everything(self):
        self.assertEqual(findings({"tests/env/a_test.cpp": "#include <coppice/runtime/b.hpp>\n"}), [])

    def test_internal_headers_stay_where_they_are(self):
        self.assertEqual(findings({
            "include/coppice/env/a.hpp": header('#include "internal/x.hpp"\n'),
            "src/runtime/a.cpp": '#include "env/internal/x.hpp"\n',
        }), ["include/coppice/env/a.hpp:2: layers", "src/runtime/a.cpp:1: layers"])

    def test_an_unknown_library_is_found(self):
        self.assertIn("src/other/a.cpp:1: layers", findings({"src/other/a.cpp": ""}))


class Words(unittest.TestCase):
    def test_time_threads_and_chance_belong_to_platform(self):
        text = ("void f() {\n  std::this_thread::yield();\n  auto t = std::chrono::steady_clock::now();\n  std::thread x;\n"
                "  std::random_device r;\n  std::mt19937 m;\n}\n")
        self.assertEqual(len(findings({"src/runtime/a.cpp": text}, "words")), 5)
        self.assertEqual(findings({"src/platform/a.cpp": text}), [])
        self.assertEqual(findings({"tests/runtime/a_test.cpp": text}), [])
        self.assertEqual(findings({"bench/a.cpp": text}), [])

    def test_tests_do_not_sleep(self):
        text = "void f() { std::this_thread::sleep_for(1s); }\n"
        self.assertEqual(findings({"tests/runtime/a_test.cpp": text}), ["tests/runtime/a_test.cpp:1: words"])
        self.assertEqual(findings({"programs/demo/main.cpp": text}), [])

    def test_words_in_comments_and_literals_are_left_alone(self):
        self.assertEqual(findings({"src/base/a.cpp": '// std::thread\nauto s = "std::thread";\nint std_thread;\n'}), [])

    def test_only_the_agreed_parts_of_cxx23(self):
        self.assertEqual(findings({"src/base/a.cpp": "std::expected<int, int> e;\nstd::to_string(1);\n"}), [])
        self.assertEqual(findings({"src/base/a.cpp": "auto s = std::format(x);\nauto v = r | std::views::zip;\n"}),
                         ["src/base/a.cpp:1: c++23", "src/base/a.cpp:2: c++23"])
        self.assertEqual(findings({"src/base/a.cpp": "#include <generator>\n#include <expected>\n"}),
                         ["src/base/a.cpp:1: c++23", "src/base/a.cpp:2: c++23"])
        self.assertEqual(findings({"src/base/a.cpp": "struct s {\n  void f(this auto& self);\n};\n"}),
                         ["src/base/a.cpp:2: c++23"])


class Files(unittest.TestCase):
    def test_headers_say_pragma_once(self):
        self.assertEqual(findings({"include/coppice/base/a.hpp": "// #pragma once\n"}),
                         ["include/coppice/base/a.hpp:1: pragma-once"])

    def test_machine_paths(self):
        text = "see /" + "home/me/x\nsrc/" + "work/x and https://example.org/" + "root/x\n"
        self.assertEqual(findings({"docs/a.md": text}), ["docs/a.md:1: machine-path"])
        self.assertEqual(findings({"a.sh": "cp x .." + "/shared/y\n"}), ["a.sh:1: machine-path"])

    def test_unfinished_work(self):
        self.assertEqual(findings({"src/base/a.cpp": "// TO" + "DO: more\n"}), ["src/base/a.cpp:1: unfinished"])

    def test_files_that_nothing_builds(self):
        used = ["src/base/a.cpp", "include/coppice/base/deep/a.hpp", "include/coppice/coppice.hpp", "tests/base/a_test.cpp",
                "tests/base/sim/a_test.cpp", "examples/01_hello/main.cpp", "programs/demo/main.cpp", "bench/a.cpp"]
        dead = ["src/base/deep/a.cpp", "tests/base/helper.cpp", "tests/base/other/a_test.cpp", "bench/deep/a.cpp",
                "tests/support/unused.hpp", "src/a.cpp"]
        for path in used:
            self.assertEqual(findings({path: header()}), [], path)
        for path in dead:
            self.assertEqual(findings({path: header()}), [f"{path}:1: dead-file"], path)

    def test_a_helper_that_a_test_includes_is_alive(self):
        self.assertEqual(findings({"tests/support/used.hpp": header(),
                                   "tests/base/a_test.cpp": '#include "support/used.hpp"\n'}), [])


class Exceptions(unittest.TestCase):
    FILE = {"src/base/a.cpp": "std::thread t;\n"}

    def test_an_exception_with_a_reason_is_accepted(self):
        self.assertEqual(findings(self.FILE | {tidy.ALLOW: "words src/base/a.cpp: because\n"}), [])

    def test_an_exception_without_a_reason_is_not(self):
        with self.assertRaises(ValueError):
            findings(self.FILE | {tidy.ALLOW: "words src/base/a.cpp\n"})

    def test_an_exception_that_is_no_longer_needed_is_found(self):
        self.assertEqual(len(tidy.check(tidy.Tree(
            {"tools/tidy/layers.txt": LAYERS, "CMakeLists.txt": CMAKE, tidy.ALLOW: "words src/base/b.cpp: because\n"}))), 1)


if __name__ == "__main__":
    unittest.main()
