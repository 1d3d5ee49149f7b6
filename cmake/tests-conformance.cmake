# Compares the traces of Coppice's supervisors with those of OTP's: recorded and random scenarios. These tests fail
# where escript (Debian: erlang-base) is missing; the last one does not need it. See conformance/README.md.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

function(coppice_conformance_test name)
  add_test(NAME conformance.${name}
    COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/conformance/compare
            --program $<TARGET_FILE:coppice-otp-trace> ${ARGN}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(conformance.${name} PROPERTIES TIMEOUT 300 LABELS conformance)
endfunction()

coppice_conformance_test(recorded_traces --recorded)
coppice_conformance_test(random_scenarios 1 400)
coppice_conformance_test(refused_scenarios --refused)
