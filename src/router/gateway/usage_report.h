// The usage that an engine reports for an answered prompt.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fathom {

struct EngineUsage {
  uint64_t prompt_tokens = 0;
  // Found in the engine's cache. nullopt: not reported; some engines do not report zero.
  std::optional<uint64_t> cached_tokens;
  uint64_t output_tokens = 0;  // of the answer

  bool operator==(const EngineUsage&) const = default;
};

// Reads a "usage" object of any of the APIs. nullopt if it does not have the prompt's tokens.
//
//   completions   prompt_tokens, prompt_tokens_details.cached_tokens, completion_tokens
//   generate      prompt_tokens, cached_tokens, completion_tokens (in SGLang's "meta_info")
//   responses     input_tokens, input_tokens_details.cached_tokens, output_tokens
//   messages      input_tokens without those of cache_read_input_tokens and
//                 cache_creation_input_tokens; output_tokens
std::optional<EngineUsage> ReadUsage(std::string_view json);

}  // namespace fathom
