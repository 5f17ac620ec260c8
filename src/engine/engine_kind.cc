#include "engine/engine_kind.h"

#include <utility>

namespace fathom {

std::string_view Name(EngineKind engine) {
  switch (engine) {
    case EngineKind::kUnknown:
      return "unknown";
    case EngineKind::kVllm:
      return "vllm";
    case EngineKind::kSglang:
      return "sglang";
    case EngineKind::kTrtllm:
      return "trtllm";
  }
  std::unreachable();
}

}  // namespace fathom
