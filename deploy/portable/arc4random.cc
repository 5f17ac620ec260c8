// Debian's static C++ library calls arc4random (std::random_device), which libc has since 2.36.
// With this one in the portable program, libc 2.34 is enough.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" uint32_t arc4random() noexcept {
  uint32_t value = 0;
  // So few bytes are given whole, and no signal interrupts it.
  if (::getrandom(&value, sizeof(value), 0) != sizeof(value)) std::abort();
  return value;
}
