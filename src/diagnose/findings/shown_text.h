// What of a text from outside may a person's screen see?
//
// Reports quote logs, engines and manifests. A control character in them could clear a terminal or
// write its title, a bidirectional mark could turn a command around. Nothing of that kind is left:
// controls and marks that cannot be seen are written as escapes (\x1b, \u202e), bytes that are not
// UTF-8 as U+FFFD.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

// On one line: runs of white space, line ends among them, are one space; none at the ends.
std::string OneLine(std::string_view text);

// Line by line, spaces kept, tabs as four of them. No empty lines at the end; none for no text.
std::vector<std::string> CodeLines(std::string_view text);

// The same for a diff, which is copied to be applied: tabs stay, and carriage returns at line ends.
std::vector<std::string> DiffLines(std::string_view text);

// How many columns of a terminal the text takes. Text that OneLine() or CodeLines() returned.
size_t ColumnsOf(std::string_view text);

// What becomes of a word that is wider than a line.
enum class LongWords : uint8_t {
  kOverflow,  // it stands alone: paths and URLs can be copied
  kBreak,
};

// Cuts one line at its spaces into lines of at most `width` columns (at least 1). Empty text is one
// empty line.
std::vector<std::string> Wrap(std::string_view line, size_t width, LongWords long_words);

}  // namespace fathom
