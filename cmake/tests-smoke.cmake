# Runs every workload of the benchmarks once, at a small scale, and the programs once: they must not fail. The figures
# are not checked here; bench/run.py does that.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(TARGET coppice_bench)
  add_test(NAME smoke.benchmarks
    COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/bench/smoke.py $<TARGET_FILE:coppice_bench>)
  set_tests_properties(smoke.benchmarks PROPERTIES TIMEOUT 300 LABELS smoke)
endif()
if(TARGET coppice-demo)
  add_test(NAME smoke.demonstration COMMAND coppice-demo --seconds 1)
  set_tests_properties(smoke.demonstration PROPERTIES TIMEOUT 120 LABELS smoke)
endif()
if(TARGET coppice-otp-trace)
  add_test(NAME smoke.otp_trace COMMAND coppice-otp-trace ${PROJECT_SOURCE_DIR}/conformance/scenarios/window.txt)
  set_tests_properties(smoke.otp_trace PROPERTIES TIMEOUT 60 LABELS smoke)
endif()
