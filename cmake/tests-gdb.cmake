# A program with a process stuck in each of many ways, which `rt.why`, the snapshot and tools/gdb have to name.
add_executable(stuck_in_many_ways tests/gdb/stuck_in_many_ways.cpp)
target_link_libraries(stuck_in_many_ways PRIVATE coppice::core)
coppice_compile(stuck_in_many_ways)

find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_program(COPPICE_GDB gdb)
add_test(NAME gdb.names_what_each_process_is_stuck_in
  COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tests/gdb/gdb_test.py
          --program $<TARGET_FILE:stuck_in_many_ways> --gdb "${COPPICE_GDB}"
          --script ${PROJECT_SOURCE_DIR}/tools/gdb/coppice_gdb.py)
set_tests_properties(gdb.names_what_each_process_is_stuck_in
  PROPERTIES TIMEOUT 300 LABELS gdb SKIP_RETURN_CODE 77)

# The names of functions differ between compilers; this needs neither gdb nor the program.
add_test(NAME gdb.shortens_the_names_of_functions
  COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tests/gdb/names_test.py
          --script ${PROJECT_SOURCE_DIR}/tools/gdb/coppice_gdb.py)
set_tests_properties(gdb.shortens_the_names_of_functions PROPERTIES TIMEOUT 60 LABELS gdb)
