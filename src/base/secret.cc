#include "base/secret.h"

#include <sys/random.h>

#include "base/check.h"

namespace fathom {

uint64_t RandomSecret() {
  uint64_t secret = 0;
  // So few bytes are given whole, and no signal interrupts it.
  CHECK(::getrandom(&secret, sizeof(secret), 0) == sizeof(secret));
  return secret;
}

}  // namespace fathom
