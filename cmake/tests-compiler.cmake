# What the compiler makes of coroutines, compared with tests/compiler/table.txt. A script compiles the probes when the
# test runs, because some of them do not compile and all of them need their own flags.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(compiler_family clang)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(compiler_family g++)
endif()
string(REGEX MATCH "^[0-9]+" compiler_major ${CMAKE_CXX_COMPILER_VERSION})
add_test(NAME compiler.coroutine_defects
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/compiler/check.py --compiler ${CMAKE_CXX_COMPILER}
          --family ${compiler_family} --version ${compiler_major}
          --work ${PROJECT_BINARY_DIR}/compiler-probes)
set_tests_properties(compiler.coroutine_defects PROPERTIES TIMEOUT 180 LABELS compiler)

# Misuse that the headers must refuse with a helpful message.
add_test(NAME compiler.refused_code
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/refused/check.py --compiler ${CMAKE_CXX_COMPILER}
          --include ${PROJECT_SOURCE_DIR}/include)
set_tests_properties(compiler.refused_code PROPERTIES TIMEOUT 600 LABELS compiler)

# What a user pays for including all of Coppice, as a ratio to what nearly every C++ file includes.
add_test(NAME compiler.header_budget
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/headers/budget.py --compiler ${CMAKE_CXX_COMPILER}
          --include ${PROJECT_SOURCE_DIR}/include)
set_tests_properties(compiler.header_budget PROPERTIES TIMEOUT 600 LABELS compiler RUN_SERIAL TRUE)
