# coppice_lint(<target> [WARN] [SKIP <rule>...])
#
# Checks a target with coppice-lint before it is built: its sources, the headers that it lists, and the files below the
# project's folder that those include with quotes. The check runs again when one of these files has changed. A finding
# fails the build; with WARN it is a warning, which is printed once. `coppice-lint --help` lists the rules.
#
# Users get this file with find_package(Coppice); the global property COPPICE_LINT is the path of the program.
cmake_policy(PUSH)
cmake_policy(VERSION 3.25)

function(coppice_lint target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "WARN" "" "SKIP")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "coppice_lint(${target}): unknown argument: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  get_property(program GLOBAL PROPERTY COPPICE_LINT)
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/coppice-lint/${target})
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/coppice-lint)

  # Expressions, because sources and folders can be added after this call. Of the sources only C++ counts.
  set(all "$<TARGET_PROPERTY:${target},SOURCES>;$<TARGET_PROPERTY:${target},HEADER_SET>")
  set(sources "$<FILTER:${all},INCLUDE,[.](cpp|cc|cxx|c[+][+]|hpp|hh|hxx|h[+][+]|h|ipp|inl)$>")
  set(sources "$<PATH:ABSOLUTE_PATH,NORMALIZE,${sources},$<TARGET_PROPERTY:${target},SOURCE_DIR>>")
  set(folders "$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>")
  set(options --below ${PROJECT_SOURCE_DIR} --stamp ${stamp})
  if(arg_WARN)
    list(APPEND options --warn)
  endif()
  foreach(rule IN LISTS arg_SKIP)
    list(APPEND options --skip ${rule})
  endforeach()

  add_custom_command(OUTPUT ${stamp}
    COMMAND Python3::Interpreter ${program} ${options} "$<$<BOOL:${folders}>:-I$<JOIN:${folders},;-I>>" "${sources}"
    DEPENDS ${program} "${sources}"
    DEPFILE ${stamp}.d
    COMMENT "Checking ${target} with coppice-lint"
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${target}_lint DEPENDS ${stamp})
  add_dependencies(${target} ${target}_lint)
endfunction()

cmake_policy(POP)
