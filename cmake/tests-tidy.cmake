# The rules of the tree: layers, banned words, lengths, the one-await rule, formatting. See tools/tidy.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME tidy.tree COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/tidy/tidy.py)
add_test(NAME tidy.rules COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/tidy/test_tidy.py)
add_test(NAME tidy.format COMMAND ${PROJECT_SOURCE_DIR}/tools/format --check)
set_tests_properties(tidy.tree tidy.rules tidy.format PROPERTIES TIMEOUT 120 LABELS tidy)
