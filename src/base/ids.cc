#include "base/ids.h"

#include <xxhash.h>

namespace fathom {

WorkerId WorkerId::OfUrl(std::string_view url) {
  constexpr uint64_t kJsonSafe = (uint64_t{1} << 53) - 1;
  return WorkerId(XXH3_64bits(url.data(), url.size()) & kJsonSafe);
}

}  // namespace fathom
