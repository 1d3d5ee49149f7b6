# One step of the package test; see cmake/tests-package.cmake. All output stays inside the build folder.
set(work ${BUILD}/package)
set(prefix ${work}/prefix)

# must(<command>...): runs a command that has to succeed; its output is left in `output`.
macro(must)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE result)
  if(NOT result STREQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${result}\n${output}${errors}")
  endif()
endmacro()

# must_fail_with(<pattern> <command>...): runs a command that has to fail, and to print something that matches.
macro(must_fail_with pattern)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE result)
  if(result STREQUAL 0 OR NOT "${output}${errors}" MATCHES "${pattern}")
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${result}, expected a failure with ${pattern}\n${output}${errors}")
  endif()
endmacro()

if(STEP STREQUAL install)
  file(REMOVE_RECURSE ${work})
  must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
elseif(STEP STREQUAL find_package)
  file(COPY ${SOURCE}/ DESTINATION ${work}/source)  # a copy, because a test below touches a file
  must(${CMAKE_COMMAND} -S ${work}/source -B ${work}/consumer -G Ninja -D CMAKE_PREFIX_PATH=${prefix}
       -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_BUILD_TYPE=${BUILD_TYPE} -D COPPICE_VERSION=${VERSION}
       -D LINT_CORPUS=${SOURCE}/../lint/found.cpp -D EXAMPLES=${SOURCE}/../../examples)
  must(${CMAKE_COMMAND} --build ${work}/consumer)
  must(${work}/consumer/consumer)
  must(${work}/consumer/loader)
  if(NOT output STREQUAL "twice 21 is 42\n")
    message(FATAL_ERROR "the plugin said: ${output}")
  endif()
  # A body that is not a coroutine is an error, without any option of the user's.
  must_fail_with("Werror=return-type" ${CMAKE_COMMAND} --build ${work}/consumer --target forgetful)
elseif(STEP STREQUAL warnings)
  must(${CMAKE_COMMAND} --build ${work}/consumer --target strict)
elseif(STEP STREQUAL lint)
  # A finding fails the build of its target; with WARN it does not, and rules can be skipped.
  must_fail_with("error: co_await in the head of an if" ${CMAKE_COMMAND} --build ${work}/consumer --target careless)
  file(REMOVE ${work}/consumer/coppice-lint/warned)  # of an earlier run
  must(${CMAKE_COMMAND} --build ${work}/consumer --target warned_lint)
  if(NOT output MATCHES "warning: co_await in the head of an if" OR output MATCHES "\\[two-awaits\\]")
    message(FATAL_ERROR "warned_lint printed: ${output}")
  endif()
  # The check runs again only when a source has changed, or a file that it includes.
  must(${CMAKE_COMMAND} --build ${work}/consumer --target consumer_lint)
  if(NOT output MATCHES "no work to do")
    message(FATAL_ERROR "the second build of consumer_lint: ${output}")
  endif()
  file(TOUCH ${work}/source/hello.hpp)
  must(${CMAKE_COMMAND} --build ${work}/consumer --target consumer_lint)
  if(NOT output MATCHES "Checking consumer with coppice-lint")
    message(FATAL_ERROR "consumer_lint after a change of hello.hpp: ${output}")
  endif()
  must(${prefix}/bin/coppice-lint ${work}/source)
  must_fail_with("\\[await-in-condition\\]" ${prefix}/bin/coppice-lint ${SOURCE}/../lint/found.cpp)
elseif(STEP STREQUAL pkg_config)
  set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
  must(pkg-config --cflags --libs coppice)
  separate_arguments(flags UNIX_COMMAND "${output}")
  # The flags come after the source, as in every Makefile: the order of the archives is part of what is tested.
  must(${COMPILER} -std=c++23 ${SOURCE}/main.cpp -o ${work}/consumer-pkg-config ${flags})
  must(${work}/consumer-pkg-config)
else()
  message(FATAL_ERROR "no such step: ${STEP}")
endif()
