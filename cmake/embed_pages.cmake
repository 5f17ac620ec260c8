# Writes the pages of docs/ into a C++ source, for `fathom docs NAME` (src/cli/embedded_pages.h).
#
#   cmake -DDOCS=docs -DOUT=embedded_pages.cc -P embed_pages.cmake -- docs/a.md docs/b.md ...
#
# Bytes are written as hexadecimal escapes, so that no page can end a literal or depend on the
# encoding of sources; in pieces, because compilers limit the length of a literal.
set(PIECE 8192)  # hexadecimal digits, two per byte

set(pages "")
set(after_dashes FALSE)
foreach(i RANGE ${CMAKE_ARGC})
  if(after_dashes AND DEFINED CMAKE_ARGV${i})
    list(APPEND pages "${CMAKE_ARGV${i}}")
  elseif("${CMAKE_ARGV${i}}" STREQUAL "--")
    set(after_dashes TRUE)
  endif()
endforeach()
list(SORT pages)

set(arrays "")
set(table "")
set(number 0)
foreach(page ${pages})
  file(RELATIVE_PATH name "${DOCS}" "${page}")
  file(READ "${page}" digits HEX)
  string(LENGTH "${digits}" length)
  string(APPEND arrays "constexpr std::string_view kPage${number}[] = {\n")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${digits}" ${at} ${PIECE} piece)
    string(REGEX REPLACE "(..)" "\\\\x\\1" piece "${piece}")
    string(APPEND arrays "    \"${piece}\"sv,\n")
    math(EXPR at "${at} + ${PIECE}")
  endwhile()
  string(APPEND arrays "};\n")
  string(APPEND table "    {\"${name}\", kPage${number}},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(WRITE "${OUT}" "// Written by cmake/embed_pages.cmake.
#include \"cli/embedded_pages.h\"

namespace fathom {
namespace {

using namespace std::string_view_literals;

${arrays}
constexpr EmbeddedPage kPages[] = {
${table}};

}  // namespace

std::span<const EmbeddedPage> EmbeddedPages() { return kPages; }

}  // namespace fathom
")
