# The target fathom_portable: the same program, for systems that are not Debian 12. It takes from the
# system libc, libm and libgcc_s alone; everything else is in it. Wheels and images hold it.
#
# Most libraries are Debian's static ones. Three have none that would do: fmt and simdjson come as shared
# libraries only, and ZeroMQ's wants Kerberos, which does. These are compiled from the sources of Debian's
# packages, which ./dev puts into build/sources (tools/debian_packages).
#
# libgcc_s stays shared: the static one needs libc 2.35, and every distribution has it. What is left needs
# 2.34, as Ubuntu 22.04, RHEL 9 and Amazon Linux 2023 have it (tests/blackbox/test_wheel.py).
set(SOURCES ${CMAKE_SOURCE_DIR}/build/sources)

add_library(static_fmt STATIC EXCLUDE_FROM_ALL ${SOURCES}/fmtlib/src/format.cc
            ${SOURCES}/fmtlib/src/os.cc)
target_include_directories(static_fmt PRIVATE ${SOURCES}/fmtlib/include)
add_library(static_simdjson STATIC EXCLUDE_FROM_ALL ${SOURCES}/simdjson/src/simdjson.cpp)
target_include_directories(static_simdjson PRIVATE ${SOURCES}/simdjson/include ${SOURCES}/simdjson/src)
target_compile_definitions(static_simdjson PRIVATE SIMDJSON_THREADS_ENABLED=1)
foreach(library static_fmt static_simdjson)
  target_compile_options(${library} PRIVATE -w -fPIE)
  set_target_properties(${library} PROPERTIES CXX_STANDARD 20)
endforeach()

include(ExternalProject)
set(ZMQ_FOLDER ${CMAKE_BINARY_DIR}/portable/zeromq3)
ExternalProject_Add(static_zmq EXCLUDE_FROM_ALL TRUE
  SOURCE_DIR ${SOURCES}/zeromq3 PREFIX ${ZMQ_FOLDER} BINARY_DIR ${ZMQ_FOLDER}/build
  CMAKE_ARGS -DCMAKE_TOOLCHAIN_FILE=${CMAKE_TOOLCHAIN_FILE} -DCMAKE_BUILD_TYPE=Release
             -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER} -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
             -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
             -DCMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER}
             -DCMAKE_CXX_FLAGS=-w -DCMAKE_C_FLAGS=-w -DCMAKE_POSITION_INDEPENDENT_CODE=ON
             -DBUILD_SHARED=OFF -DBUILD_TESTS=OFF -DZMQ_BUILD_TESTS=OFF -DWITH_PERF_TOOL=OFF
             -DWITH_DOCS=OFF -DENABLE_CPACK=OFF -DWITH_LIBSODIUM=OFF -DENABLE_CURVE=OFF
             -DWITH_LIBBSD=OFF -DENABLE_WS=OFF
  BUILD_COMMAND ${CMAKE_COMMAND} --build . --target libzmq-static
  BUILD_BYPRODUCTS ${ZMQ_FOLDER}/build/lib/libzmq.a
  INSTALL_COMMAND "" LOG_CONFIGURE ON LOG_BUILD ON)

set(archives ${ZMQ_FOLDER}/build/lib/libzmq.a)
foreach(name jemalloc yaml-cpp pcre2-8 utf8proc xxhash ssl crypto cares)
  find_library(STATIC_${name} NAMES lib${name}.a REQUIRED)
  mark_as_advanced(STATIC_${name})
  list(APPEND archives ${STATIC_${name}})
endforeach()

get_property(rooms GLOBAL PROPERTY FATHOM_ROOMS)
list(TRANSFORM rooms REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE room_files)
add_executable(fathom_portable EXCLUDE_FROM_ALL $<TARGET_OBJECTS:fathom_main>
               ${CMAKE_SOURCE_DIR}/deploy/portable/arc4random.cc)
# Files, not targets: those would bring the shared libraries that they otherwise use.
target_link_libraries(fathom_portable PRIVATE -Wl,--start-group ${room_files}
                      $<TARGET_FILE:static_fmt> $<TARGET_FILE:static_simdjson> ${archives}
                      -Wl,--end-group Threads::Threads)
target_link_options(fathom_portable PRIVATE -static-libstdc++)
add_dependencies(fathom_portable static_fmt static_simdjson static_zmq ${rooms})
fathom_link(fathom_portable)
set_target_properties(fathom_portable PROPERTIES OUTPUT_NAME fathom
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/portable)
add_custom_command(TARGET fathom_portable POST_BUILD
  COMMAND ${CMAKE_SOURCE_DIR}/deploy/portable/libraries "${CMAKE_SYSROOT}" ${SOURCES} ${archives}
          > ${CMAKE_BINARY_DIR}/portable/libraries.txt
  VERBATIM COMMENT "Listing the libraries that the portable program holds")
