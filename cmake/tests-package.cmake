# The installed package, used from outside: by find_package and by pkg-config.
set(package_arguments
  -D BUILD=${PROJECT_BINARY_DIR} -D SOURCE=${PROJECT_SOURCE_DIR}/tests/package -D COMPILER=${CMAKE_CXX_COMPILER}
  -D BUILD_TYPE=${CMAKE_BUILD_TYPE} -D LIBDIR=${CMAKE_INSTALL_LIBDIR} -D VERSION=${PROJECT_VERSION})
foreach(step install find_package lint warnings pkg_config)
  add_test(NAME package.${step}
    COMMAND ${CMAKE_COMMAND} -D STEP=${step} ${package_arguments} -P ${PROJECT_SOURCE_DIR}/tests/package/run.cmake)
  set_tests_properties(package.${step} PROPERTIES TIMEOUT 600 LABELS package)
endforeach()
set_tests_properties(package.install PROPERTIES FIXTURES_SETUP installed_package)
set_tests_properties(package.find_package package.pkg_config PROPERTIES FIXTURES_REQUIRED installed_package)
set_tests_properties(package.find_package PROPERTIES FIXTURES_SETUP built_consumer)
set_tests_properties(package.lint package.warnings PROPERTIES FIXTURES_REQUIRED built_consumer)
