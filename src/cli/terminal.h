// How many columns does the reader's terminal have?
#pragma once

#include <cstddef>

namespace fathom {

constexpr size_t kUsualColumns = 80;

// COLUMNS where the environment has it, else the width of the terminal behind standard output;
// kUsualColumns if that is no terminal. Between 40 and 140.
size_t TerminalColumns();

}  // namespace fathom
