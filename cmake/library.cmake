# coppice_library(<name> [DEPENDS <library>...] [LINK_ONLY <library>...])
#
# One library: public headers from include/coppice/<name>/, sources from src/<name>/, target coppice::<name>.
# Without sources it is an INTERFACE library. DEPENDS is what its headers and sources may include; LINK_ONLY is what it
# needs at link time without including it.
function(coppice_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS;LINK_ONLY")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/coppice/${name}/*.hpp)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  set(target coppice_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    coppice_compile(${target})
    # The code can become part of a shared library. Our functions are not replaced when that is loaded.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)  # for src/<name>/internal, never installed
    set_property(GLOBAL APPEND PROPERTY COPPICE_ARCHIVES ${target})
    if(COPPICE_SANITIZE)  # only tests are built, and the libraries that they need
      set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(coppice::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${headers})
  target_compile_features(${target} ${scope} cxx_std_23)
  target_link_libraries(${target} ${scope} Threads::Threads)
  foreach(depend IN LISTS arg_DEPENDS)
    target_link_libraries(${target} ${scope} coppice::${depend})
  endforeach()
  foreach(depend IN LISTS arg_LINK_ONLY)
    target_link_libraries(${target} INTERFACE $<LINK_ONLY:coppice::${depend}>)
  endforeach()
  # Public, because headers test it too: two parts of a program that disagree would free each other's memory wrongly.
  if(COPPICE_PLAIN_MALLOC)
    target_compile_definitions(${target} ${scope} COPPICE_PLAIN_MALLOC=1)
  endif()
endfunction()

# coppice_component(<name> LIBRARIES <library>...)
#
# What find_package(Coppice COMPONENTS <name>) gives: coppice::<name>, linking the libraries. The core component also
# has the headers directly in include/coppice.
function(coppice_component name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES")
  set(target coppice_${name})
  add_library(${target} INTERFACE)
  add_library(coppice::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  list(TRANSFORM arg_LIBRARIES PREPEND coppice_ OUTPUT_VARIABLE libraries)
  list(REVERSE libraries)  # each library before those that it uses, as a linker needs archives
  target_link_libraries(${target} INTERFACE ${libraries})
  # A body of task<> without any co_await or co_return is not a coroutine: it returns nothing, and the program crashes.
  # g++ says so only with -Wall, and only as a warning.
  target_compile_options(${target} INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:-Werror=return-type>)
  if(name STREQUAL core)
    file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/coppice/*.hpp)
    target_sources(${target} INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${headers})
  endif()
  set_property(GLOBAL PROPERTY COPPICE_COMPONENT_${name} ${libraries} ${target})
endfunction()
