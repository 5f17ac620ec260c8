#include "router/events/extra_key.h"

#include <xxhash.h>

#include "base/text.h"

namespace fathom {

uint64_t ExtraKeyOf(std::string_view identifier) {
  if (const auto number = ParseDecimal(identifier)) return *number;
  return XXH3_64bits(identifier.data(), identifier.size());
}

}  // namespace fathom
