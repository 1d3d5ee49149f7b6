include(GoogleTest)

# coppice_tests(<library> [ALSO <library>...])
#
# tests/<library>/*_test.cpp         -> <library>_tests,        one CTest test per test case
# tests/<library>/sim/*_test.cpp     -> <library>_sim_tests,    many seeds each: four shards, which run in parallel
# tests/<library>/stress/*_test.cpp  -> <library>_stress_tests, real threads: one at a time, each needs all cores
# Folders that are not there are left out. Labels are the library's name and unit, sim or stress. Programs whose name does
# not match COPPICE_TEST_PROGRAMS are left out too; with COPPICE_COMPILE_ALL_TESTS they are compiled, but neither linked
# nor run. Where COPPICE_TEST_SOURCES is set, only the files that have a line matching it are compiled at all.
function(coppice_tests library)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ALSO")
  set(libraries ${library} ${arg_ALSO})
  set(folder ${PROJECT_SOURCE_DIR}/tests/${library})

  coppice_test_program(${library}_tests ${folder} "${libraries}")
  coppice_discover(${library}_tests ${library}. "TIMEOUT 120 LABELS [[${library};unit]]")

  coppice_test_program(${library}_sim_tests ${folder}/sim "${libraries};sim")
  if(TARGET ${library}_sim_tests)
    foreach(shard RANGE 3)
      set(test ${library}_sim_tests.${shard})
      add_test(NAME ${test} COMMAND ${library}_sim_tests)
      # In a long run the fake stack of the address sanitizer fills up, and then a call takes thirty times as long.
      set_tests_properties(${test} PROPERTIES TIMEOUT 600 LABELS "${library};sim"
        ENVIRONMENT "GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${shard};ASAN_OPTIONS=detect_stack_use_after_return=0")
    endforeach()
  endif()

  coppice_test_program(${library}_stress_tests ${folder}/stress "${libraries}")
  coppice_discover(${library}_stress_tests ${library}.stress.
    "TIMEOUT 600 RUN_SERIAL TRUE LABELS [[${library};stress]]")
endfunction()

function(coppice_test_program program folder libraries)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*_test.cpp)
  if(COPPICE_TEST_SOURCES)
    coppice_sources_with("${COPPICE_TEST_SOURCES}" sources)
  endif()
  if(NOT sources)
    return()
  endif()
  coppice_join_sources(${program} sources)
  if(program MATCHES "${COPPICE_TEST_PROGRAMS}")
    add_executable(${program} ${sources})
  elseif(COPPICE_COMPILE_ALL_TESTS)
    set(program ${program}_compiled)
    add_library(${program} OBJECT ${sources})
  else()
    return()
  endif()
  coppice_compile(${program})
  target_compile_options(${program} PRIVATE ${COPPICE_TEST_OPTIONS})
  # tests/ for shared helpers, src/ for the internal headers under test, the folder for what joined sources include
  target_include_directories(${program} PRIVATE ${folder} ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM libraries PREPEND coppice:: OUTPUT_VARIABLE links)
  target_link_libraries(${program} PRIVATE ${links} GTest::gtest_main)
endfunction()

# coppice_sources_with(<regular expression> <variable>): keeps the files of a list that have a line that matches.
function(coppice_sources_with regex variable)
  set(kept)
  foreach(source IN LISTS ${variable})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} lines REGEX "${regex}" LIMIT_COUNT 1)
    if(lines)
      list(APPEND kept ${source})
    endif()
  endforeach()
  set(${variable} ${kept} PARENT_SCOPE)
endfunction()

# coppice_join_sources(<program> <variable>): replaces the files of a list by generated ones that include up to
# COPPICE_TESTS_PER_UNIT of them each. Most of the time to compile a test file goes into headers and into templates that
# the next test file needs again. Each file is in a namespace of its own, so that equal names do not clash, and the headers
# of all of them come first, outside of these namespaces. Files that add to the namespace coppice, and those that say in a
# comment that they are compiled alone, stay as they are.
function(coppice_join_sources program variable)
  if(COPPICE_TESTS_PER_UNIT LESS_EQUAL 1)
    return()
  endif()
  set(alone ${${variable}})
  coppice_sources_with("^(namespace coppice|template <>|// Compiled alone)" alone)
  set(members ${${variable}})
  list(REMOVE_ITEM members ${alone})
  list(LENGTH members count)
  math(EXPR units "(${count} + ${COPPICE_TESTS_PER_UNIT} - 1) / ${COPPICE_TESTS_PER_UNIT}")

  set(unit 0)
  foreach(source IN LISTS members)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} includes REGEX "^#include ")
    list(APPEND headers_${unit} ${includes})
    cmake_path(GET source STEM stem)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests)
    string(APPEND files_${unit} "namespace in_${stem} {\n#include \"${source}\"\n}\n")
    math(EXPR unit "(${unit} + 1) % ${units}")
  endforeach()

  set(joined)
  while(units GREATER 0)
    math(EXPR units "${units} - 1")
    list(REMOVE_DUPLICATES headers_${units})
    list(JOIN headers_${units} "\n" headers)
    set(file ${PROJECT_BINARY_DIR}/joined/${program}_${units}.cpp)
    file(CONFIGURE OUTPUT ${file} @ONLY CONTENT "${headers}\n${files_${units}}")
    # g++ takes the unnamed namespace of an included file for one in a header, and warns.
    set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    list(APPEND joined ${file})
  endwhile()
  set(${variable} ${alone} ${joined} PARENT_SCOPE)
endfunction()

# coppice_discover(<program> <prefix> <properties>): one CTest test per test case of a program, found when CTest runs.
# The prefix keeps equal names in different programs apart. The properties are set from a separate file, because
# gtest_discover_tests splits lists (labels).
function(coppice_discover program prefix properties)
  if(NOT TARGET ${program})
    return()
  endif()
  gtest_discover_tests(${program} TEST_PREFIX ${prefix} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
  set(file ${PROJECT_BINARY_DIR}/${program}-properties.cmake)
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [=[
if(@program@_TESTS)
  set_tests_properties(${@program@_TESTS} PROPERTIES @properties@)
endif()
]=])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()
