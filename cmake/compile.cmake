# How our own code is compiled. Nothing of this reaches users: the options are private to each target.

# coppice_compile(<target>): warnings for a target of ours.
function(coppice_compile target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
    $<$<BOOL:${COPPICE_WARNINGS_AS_ERRORS}>:-Werror>)
  # When it optimises, g++ 12 warns of overlapping copies inside std::string where there are none, and takes the
  # inactive member of a moved std::expected for uninitialized. clang and clang-tidy check for both as well.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-maybe-uninitialized)
  endif()
endfunction()
