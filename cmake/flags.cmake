# Flags that every room shares.
add_library(fathom_options INTERFACE)
target_compile_options(fathom_options INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror
  -fno-omit-frame-pointer)
target_link_libraries(fathom_options INTERFACE fmt::fmt Threads::Threads)
target_compile_definitions(fathom_options INTERFACE FATHOM_VERSION="${PROJECT_VERSION}")

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(fathom_options INTERFACE -Wno-missing-designated-field-initializers
                         -Wno-unknown-warning-option)
else()
  # g++ 12 sees phantom uninitialised reads in std::expected and coroutine frames, wants every
  # designated initialiser spelled out, and takes sources that are compiled together for headers.
  target_compile_options(fathom_options INTERFACE -Wno-maybe-uninitialized -Wno-uninitialized
                         -Wno-missing-field-initializers -Wno-stringop-overflow
                         -Wno-array-bounds -Wno-dangling-pointer -Wno-restrict -Wno-shadow
                         -Wno-subobject-linkage)
endif()

# Optimised as a whole when it is linked: a tenth fewer instructions per request. It costs minutes, so
# only packages and benchmarks have it.
if(FATHOM_WHOLE_PROGRAM)
  target_compile_options(fathom_options INTERFACE -flto=thin)
  # What is shipped is the same from every clone.
  list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_SOURCE_DIR}/tools/relative_paths)
endif()

find_program(MOLD mold)
function(fathom_link target)
  if(FATHOM_WHOLE_PROGRAM)
    target_link_options(${target} PRIVATE -flto=thin -fuse-ld=lld-19)
  elseif(MOLD)
    target_link_options(${target} PRIVATE -fuse-ld=mold)
  endif()
endfunction()

if(FATHOM_SANITIZE)
  target_compile_options(fathom_options INTERFACE -fsanitize=${FATHOM_SANITIZE}
                         -fno-sanitize-recover=all)
  target_link_options(fathom_options INTERFACE -fsanitize=${FATHOM_SANITIZE})
endif()
