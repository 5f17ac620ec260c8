# A room is a folder under src/: a static library of its sources, plus, from the files that stand
# beside them, one test program (x_test.cc) and one fuzz program per x_fuzz.cc. Its name is the last
# part of its path. TEST_ROOMS and TEST_LIBS are what its tests alone use.
#
#   fathom_room(io/http ROOMS base codec LIBS fmt::fmt TEST_ROOMS metrics TEST_LIBS http_parser)
#
# Sources are compiled a dozen at a time (FATHOM_FAST_BUILD). Those under APART are compiled by
# themselves, because they have names in common with others of the room.
#
# Most tests are quick however they are compiled, and compiling takes longer than running them: rooms
# get FATHOM_ROOM_FLAGS and tests FATHOM_TEST_FLAGS, which turn optimisation off where nobody waits for
# the program. HOT rooms, in which a request spends its time, are optimised in every build; so are
# HEAVY ones with their tests, which repeat something many thousand times.
#
# The targets unit_tests and fuzz_programs are those of all rooms.
add_custom_target(unit_tests)
add_custom_target(fuzz_programs)

# clang looks for its own libraries on this machine alone.
function(fathom_link_fuzzer program)
  if(CMAKE_CROSSCOMPILING)
    target_link_libraries(${program} PRIVATE
      ${CMAKE_SYSROOT}/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-${CMAKE_SYSTEM_PROCESSOR}.a)
  else()
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
  endif()
endfunction()

function(fathom_room path)
  cmake_parse_arguments(room "HOT;HEAVY" "" "ROOMS;LIBS;TEST_ROOMS;TEST_LIBS;APART" ${ARGN})
  get_filename_component(name ${path} NAME)
  set(folder ${CMAKE_CURRENT_SOURCE_DIR}/${path})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc)
  file(GLOB tests CONFIGURE_DEPENDS ${folder}/*_test.cc)
  file(GLOB fuzzers CONFIGURE_DEPENDS ${folder}/*_fuzz.cc)
  list(REMOVE_ITEM sources ${folder}/main.cc ${tests} ${fuzzers})
  list(TRANSFORM room_ROOMS PREPEND fathom_ OUTPUT_VARIABLE room_targets)
  list(TRANSFORM room_TEST_ROOMS PREPEND fathom_ OUTPUT_VARIABLE test_targets)
  list(TRANSFORM room_APART PREPEND ${folder}/ OUTPUT_VARIABLE apart)
  set(room_flags ${FATHOM_ROOM_FLAGS})
  set(test_flags ${FATHOM_TEST_FLAGS})
  set(test_headers fathom_precompiled_test)
  if(room_HOT OR room_HEAVY)
    set(room_flags "")
  endif()
  if(room_HEAVY)
    set(test_flags "")
    set(test_headers fathom_precompiled)  # those of tests are compiled with the flags of other tests
  endif()
  # For arm64 the program that is packaged is the one that is tested, so rooms stay as they are.
  if(FATHOM_FUZZ AND fuzzers AND NOT CMAKE_CROSSCOMPILING)
    list(APPEND room_flags -fsanitize=fuzzer-no-link)
  endif()

  if(sources)
    set(scope PUBLIC)
    fathom_together(together ${name} "${sources}" "${apart}")
    add_library(fathom_${name} STATIC ${together})
    set_property(GLOBAL APPEND PROPERTY FATHOM_ROOMS fathom_${name})
    target_compile_options(fathom_${name} PRIVATE ${room_flags})
    fathom_precompile(fathom_${name} fathom_precompiled)
  else()
    set(scope INTERFACE)
    add_library(fathom_${name} INTERFACE)
  endif()
  target_include_directories(fathom_${name} ${scope} ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(fathom_${name} ${scope} fathom_options ${room_targets} ${room_LIBS})

  if(tests)
    fathom_together(together ${name}_test "${tests}" "${apart}")
    add_executable(${name}_test ${together})
    target_link_libraries(${name}_test PRIVATE fathom_${name} ${test_targets} ${room_TEST_LIBS}
                                               GTest::gmock GTest::gtest_main)
    target_compile_options(${name}_test PRIVATE ${test_flags})
    fathom_precompile(${name}_test ${test_headers})
    fathom_link(${name}_test)
    # One process for all tests of a room: to start one per test took longer than the tests. They
    # run in the root of the repository, and name its files from there.
    add_test(NAME ${name} COMMAND ${name}_test --gtest_brief=1 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT 1500)
    add_dependencies(unit_tests ${name}_test)
  endif()

  if(FATHOM_FUZZ)
    foreach(fuzzer ${fuzzers})
      get_filename_component(program ${fuzzer} NAME_WE)
      add_executable(${program} ${fuzzer})
      target_compile_options(${program} PRIVATE ${room_flags} -fsanitize=fuzzer-no-link)
      target_link_libraries(${program} PRIVATE fathom_${name} ${test_targets} ${room_TEST_LIBS})
      fathom_link_fuzzer(${program})
      fathom_precompile(${program} fathom_precompiled)
      fathom_link(${program})
      add_dependencies(fuzz_programs ${program})
    endforeach()
  endif()
endfunction()
