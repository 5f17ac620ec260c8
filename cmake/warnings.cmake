# Flags that every room shares.
add_library(fathom_options INTERFACE)
target_compile_options(fathom_options INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror
  -fno-omit-frame-pointer)
target_link_libraries(fathom_options INTERFACE fmt::fmt Threads::Threads)
target_compile_definitions(fathom_options INTERFACE FATHOM_VERSION="${PROJECT_VERSION}")

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(fathom_options INTERFACE -Wthread-safety -Wno-missing-designated-field-initializers
                         -Wno-unknown-warning-option)
else()
  # g++ 12 sees phantom uninitialised reads in std::expected and coroutine frames, and wants every
  # designated initialiser spelled out.
  target_compile_options(fathom_options INTERFACE -Wno-maybe-uninitialized -Wno-uninitialized
                         -Wno-missing-field-initializers -Wno-stringop-overflow
                         -Wno-array-bounds -Wno-dangling-pointer -Wno-restrict)
endif()

find_program(MOLD mold)
if(MOLD)
  target_link_options(fathom_options INTERFACE -fuse-ld=mold)
endif()

if(FATHOM_SANITIZE)
  target_compile_options(fathom_options INTERFACE -fsanitize=${FATHOM_SANITIZE}
                         -fno-sanitize-recover=all)
  target_link_options(fathom_options INTERFACE -fsanitize=${FATHOM_SANITIZE})
endif()
if(FATHOM_FUZZ)
  target_compile_options(fathom_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
