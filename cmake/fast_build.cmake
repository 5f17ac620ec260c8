# What makes a build take minutes instead of a quarter of an hour (FATHOM_FAST_BUILD).
#
# Nine tenths of the time to compile a source went into reading the same headers: of the standard
# library, of GoogleTest, of the rooms below. So the first two are compiled once per build, and the
# sources of a room are compiled a dozen at a time. Each source still includes what it uses:
# `./dev build apart` compiles them one by one, without any of this, and finds what is missing.

set(FATHOM_STANDARD_HEADERS
  <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <compare> <condition_variable>
  <coroutine> <cstddef> <cstdint> <cstdlib> <cstring> <deque> <expected> <filesystem> <fstream>
  <functional> <future> <iterator> <limits> <list> <map> <memory> <mutex> <numeric> <optional> <ranges>
  <set> <shared_mutex> <span> <sstream> <string> <string_view> <system_error> <thread> <tuple>
  <type_traits> <unordered_map> <unordered_set> <utility> <variant> <vector>)

# fathom_precompiled_headers(TARGET HEADER...): a set of headers, compiled with the flags of TARGET.
#
# CMake names the files of precompiled headers by their whole paths, in a way that ccache does not
# understand if the compiler is clang: no other clone could use what one has compiled. So for clang a
# header of the system is the source of an object that is in truth a precompiled header; the others
# come before it. None of them lies in a clone: a precompiled header remembers the path of each, and
# one from ccache must not look for files of a clone that is gone.
find_file(FATHOM_LAST_HEADER fmt/format.h REQUIRED)
mark_as_advanced(FATHOM_LAST_HEADER)

function(fathom_precompiled_headers target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_library(${target} OBJECT EXCLUDE_FROM_ALL ${FATHOM_LAST_HEADER})
    set_source_files_properties(${FATHOM_LAST_HEADER} PROPERTIES LANGUAGE CXX)
    list(TRANSFORM ARGN REPLACE "<(.+)>" "SHELL:-include \\1" OUTPUT_VARIABLE includes)
    target_compile_options(${target} PRIVATE "SHELL:-x c++-header" "SHELL:-Xclang -fno-pch-timestamp"
                           -w ${includes})
  else()
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${target}.cc CONTENT "" @ONLY)
    add_library(${target} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/${target}.cc)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
  target_link_libraries(${target} PRIVATE fathom_options)
endfunction()

# fathom_precompile(TARGET HEADERS): TARGET is compiled with that set of headers. Neither the time nor
# the path at which they were compiled matters: they are compiled anew when one of them changes.
function(fathom_precompile target headers)
  if(NOT FATHOM_FAST_BUILD)
    return()
  endif()
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_precompile_headers(${target} REUSE_FROM ${headers})
    return()
  endif()
  set(file ${CMAKE_BINARY_DIR}/CMakeFiles/${headers}.dir${FATHOM_LAST_HEADER}.o)
  target_compile_options(${target} PRIVATE "SHELL:-include-pch ${file}" "SHELL:-Xclang -fno-validate-pch")
  get_target_property(sources ${target} SOURCES)
  set_source_files_properties(${sources} PROPERTIES OBJECT_DEPENDS ${file})
endfunction()

# fathom_together(VARIABLE NAME SOURCES APART): the sources to compile in place of SOURCES. Paths in
# them are those from src/, so that ccache can share what they compile to with other clones.
function(fathom_together variable name sources apart)
  if(NOT FATHOM_FAST_BUILD)
    set(${variable} ${sources} PARENT_SCOPE)
    return()
  endif()
  file(GLOB alone ${apart})
  set(result "")
  foreach(source ${alone})
    if(source IN_LIST sources)
      list(APPEND result ${source})
      list(REMOVE_ITEM sources ${source})
    endif()
  endforeach()
  list(LENGTH sources count)
  math(EXPR batches "(${count} + 11) / 12")
  set(number 0)
  while(number LESS batches)
    set(text "")
    set(index ${number})
    while(index LESS count)
      list(GET sources ${index} source)
      file(RELATIVE_PATH path ${CMAKE_CURRENT_SOURCE_DIR} ${source})
      string(APPEND text "#include \"${path}\"\n")
      math(EXPR index "${index} + ${batches}")
    endwhile()
    set(file ${CMAKE_BINARY_DIR}/together/${name}_${number}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND result ${file})
    math(EXPR number "${number} + 1")
  endwhile()
  set(${variable} ${result} PARENT_SCOPE)
endfunction()

if(FATHOM_FAST_BUILD)
  fathom_precompiled_headers(fathom_precompiled ${FATHOM_STANDARD_HEADERS})
  fathom_precompiled_headers(fathom_precompiled_test ${FATHOM_STANDARD_HEADERS} <gmock/gmock.h>
                             <gtest/gtest.h>)
  target_link_libraries(fathom_precompiled_test PRIVATE GTest::gmock)
  target_compile_options(fathom_precompiled_test PRIVATE ${FATHOM_TEST_FLAGS})
endif()
