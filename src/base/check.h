// Violated invariants of our own code stop the process, with the place and the reason.
#pragma once

namespace fathom {

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace fathom

#define CHECK(condition)                                     \
  do {                                                       \
    if (!(condition)) [[unlikely]]                           \
      ::fathom::CheckFailed(#condition, __FILE__, __LINE__); \
  } while (false)
