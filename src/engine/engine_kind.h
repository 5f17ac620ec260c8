// Which engine is behind a URL?
#pragma once

#include <cstdint>
#include <string_view>

namespace fathom {

enum class EngineKind : uint8_t { kUnknown, kVllm, kSglang, kTrtllm };
std::string_view Name(EngineKind engine);

}  // namespace fathom
