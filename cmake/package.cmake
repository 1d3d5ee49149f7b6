# Installing, find_package(Coppice COMPONENTS ...) and pkg-config.
include(CMakePackageConfigHelpers)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Coppice)

# One export file per component, so that a user of a component needs only the dependencies of that component.
get_property(core_targets GLOBAL PROPERTY COPPICE_COMPONENT_core)
install(TARGETS ${core_targets} EXPORT Coppice-core FILE_SET HEADERS)
install(EXPORT Coppice-core NAMESPACE coppice:: DESTINATION ${config_folder})

# coppice-lint, and the CMake function that runs it.
set(COPPICE_LINT_FOLDER ${CMAKE_INSTALL_DATADIR}/coppice/lint)
file(RELATIVE_PATH COPPICE_LINT_FROM_BIN ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/coppice/lint)
configure_file(tools/lint/coppice-lint.in coppice-lint @ONLY)
install(PROGRAMS ${PROJECT_BINARY_DIR}/coppice-lint DESTINATION ${CMAKE_INSTALL_BINDIR})
install(PROGRAMS tools/lint/coppice_lint.py DESTINATION ${COPPICE_LINT_FOLDER})
install(FILES tools/lint/awaits.py tools/lint/classes.py tools/lint/cxx.py tools/lint/lifetimes.py
        DESTINATION ${COPPICE_LINT_FOLDER})
install(FILES cmake/CoppiceLint.cmake DESTINATION ${config_folder})

# Commands for gdb: see docs/guide/observation.md.
install(FILES tools/gdb/coppice_gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/coppice/gdb)

configure_package_config_file(cmake/CoppiceConfig.cmake.in CoppiceConfig.cmake INSTALL_DESTINATION ${config_folder}
                              PATH_VARS COPPICE_LINT_FOLDER)
# Until 1.0 a minor version may break users.
write_basic_package_version_file(CoppiceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/CoppiceConfig.cmake ${PROJECT_BINARY_DIR}/CoppiceConfigVersion.cmake
        DESTINATION ${config_folder})

# The archives in the order that a linker needs: each before those that it uses. They were declared lowest first.
get_property(archives GLOBAL PROPERTY COPPICE_ARCHIVES)
list(REVERSE archives)
list(TRANSFORM archives PREPEND -l)
list(JOIN archives " " COPPICE_PC_LIBS)
set(COPPICE_PC_CFLAGS "")
if(COPPICE_PLAIN_MALLOC)
  set(COPPICE_PC_CFLAGS " -DCOPPICE_PLAIN_MALLOC=1")
endif()
# Relative to the .pc file, so that an installed tree may be moved.
file(RELATIVE_PATH COPPICE_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" COPPICE_PC_PREFIX ${COPPICE_PC_PREFIX})
configure_file(cmake/coppice.pc.in coppice.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/coppice.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
