#include "router/index/holding.h"

namespace fathom {

std::string_view Name(Tier tier) {
  switch (tier) {
    case Tier::kDevice:
      return "device";
    case Tier::kHost:
      return "host";
    case Tier::kDisk:
      return "disk";
    case Tier::kExternal:
      return "external";
  }
  return "unknown";
}

}  // namespace fathom
