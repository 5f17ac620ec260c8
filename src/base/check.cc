#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace fathom {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "FATAL: %s:%d: broken invariant: %s\n", file, line, condition);
  std::abort();
}

}  // namespace fathom
