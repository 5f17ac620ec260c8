# A room is a folder under src/: a static library of its sources, plus, from the files that stand
# beside them, one test program (x_test.cc) and one fuzz program per x_fuzz.cc.
#
#   fathom_room(codec ROOMS base LIBS fmt::fmt TEST_LIBS http_parser)
function(fathom_room name)
  cmake_parse_arguments(room "" "" "ROOMS;LIBS;TEST_LIBS" ${ARGN})
  set(folder ${CMAKE_CURRENT_SOURCE_DIR}/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc)
  file(GLOB tests CONFIGURE_DEPENDS ${folder}/*_test.cc)
  file(GLOB fuzzers CONFIGURE_DEPENDS ${folder}/*_fuzz.cc)
  list(REMOVE_ITEM sources ${folder}/main.cc ${tests} ${fuzzers})
  list(TRANSFORM room_ROOMS PREPEND fathom_ OUTPUT_VARIABLE room_targets)

  if(sources)
    set(scope PUBLIC)
    add_library(fathom_${name} STATIC ${sources})
  else()
    set(scope INTERFACE)
    add_library(fathom_${name} INTERFACE)
  endif()
  target_include_directories(fathom_${name} ${scope} ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(fathom_${name} ${scope} fathom_options ${room_targets} ${room_LIBS})

  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE fathom_${name} ${room_TEST_LIBS} GTest::gmock
                                               GTest::gtest_main)
    fathom_link(${name}_test)
    # Tests run in the root of the repository, and name its files from there: with the path of this
    # clone in its commands, ccache could not share what they compile to with other clones.
    target_compile_definitions(${name}_test PRIVATE FATHOM_SOURCE_DIR=".")
    gtest_discover_tests(${name}_test TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60
                         WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTIES TIMEOUT 300)
  endif()

  if(FATHOM_FUZZ)
    foreach(fuzzer ${fuzzers})
      get_filename_component(program ${fuzzer} NAME_WE)
      add_executable(${program} ${fuzzer})
      target_link_libraries(${program} PRIVATE fathom_${name} ${room_TEST_LIBS})
      target_link_options(${program} PRIVATE -fsanitize=fuzzer)
      fathom_link(${program})
    endforeach()
  endif()
endfunction()
