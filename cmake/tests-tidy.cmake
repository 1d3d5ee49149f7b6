# The rules of the tree: layers, banned words, lengths, the one-await rule, formatting. See tools/tidy.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME tidy.tree COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/tidy/tidy.py)
add_test(NAME tidy.rules COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/tidy/test_tidy.py)
add_test(NAME tidy.format COMMAND ${PROJECT_SOURCE_DIR}/tools/format --check)
set_tests_properties(tidy.tree tidy.rules tidy.format PROPERTIES TIMEOUT 120 LABELS tidy)

# coppice-lint, which users get. Examples and the code of the guide are what they copy.
add_test(NAME tidy.lint COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/lint/test_lint.py
         --compiler ${CMAKE_CXX_COMPILER})
file(GLOB guide_tests ${PROJECT_SOURCE_DIR}/tests/*/guide_test.cpp)
add_test(NAME tidy.examples_pass_the_lint
  COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/lint/coppice_lint.py ${PROJECT_SOURCE_DIR}/examples ${guide_tests})
set_tests_properties(tidy.lint tidy.examples_pass_the_lint PROPERTIES TIMEOUT 120 LABELS tidy)
