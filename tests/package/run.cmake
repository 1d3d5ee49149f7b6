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

if(STEP STREQUAL install)
  file(REMOVE_RECURSE ${work})
  must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
elseif(STEP STREQUAL find_package)
  must(${CMAKE_COMMAND} -S ${SOURCE} -B ${work}/consumer -G Ninja -D CMAKE_PREFIX_PATH=${prefix}
       -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_BUILD_TYPE=${BUILD_TYPE} -D COPPICE_VERSION=${VERSION})
  must(${CMAKE_COMMAND} --build ${work}/consumer)
  must(${work}/consumer/consumer)
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
