# The toolchain of presets for arm64. clang is a cross compiler as it comes; headers and libraries are
# those of Debian's packages, in a folder that ./dev fills (tools/debian_packages). What is built runs
# in qemu on machines that are no arm64, with that folder as its root for libraries.
#
# The folder lies outside of the clone, in the user's cache: precompiled headers name its files, and
# ccache shares what they compile to with other clones (cmake/fast_build.cmake).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_SYSROOT $ENV{ARM64_ROOT})
if(NOT CMAKE_SYSROOT)
  set(CMAKE_SYSROOT $ENV{HOME}/.cache/fathom/arm64)
endif()
foreach(language C CXX)
  set(CMAKE_${language}_COMPILER_TARGET aarch64-linux-gnu)
endforeach()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${CMAKE_SYSROOT})
