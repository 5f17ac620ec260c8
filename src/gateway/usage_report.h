// What an engine says about the prompt that it has answered.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fathom {

struct EngineUsage {
  uint64_t prompt_tokens = 0;
  // Of these, found in its cache. Nothing where the engine does not tell; some do not tell of none.
  std::optional<uint64_t> cached_tokens;

  bool operator==(const EngineUsage&) const = default;
};

// Reads a "usage" object. Nothing if it does not have the tokens of the prompt.
std::optional<EngineUsage> ReadUsage(std::string_view json);

}  // namespace fathom
