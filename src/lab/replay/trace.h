// Who asked what, in an hour of real traffic? Reads the traces in bench/traces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "text/tokens/token.h"

namespace fathom {

// Prompt tokens that one id of a trace stands for.
constexpr uint64_t kTokensPerTraceId = 512;

struct TraceRequest {
  Duration at;
  uint32_t input = 0;         // tokens, at least 1
  uint32_t output = 0;        // tokens, at least 1
  std::vector<uint64_t> ids;  // at least one; equal ids mean equal tokens, with all before them
};

// A JSON object per line: timestamp (ms), input_length, output_length, hash_ids.
Result<std::vector<TraceRequest>> ReadTrace(const std::string& path);

// Ids are below this, so a repetition of the trace with ids of its own can add multiples of it.
uint64_t IdsEnd(const std::vector<TraceRequest>& trace);

// The prompt behind the ids, each of which counts as `shift` more: the same id gives the same
// tokens.
std::vector<TokenId> PromptOf(const TraceRequest& request, uint64_t shift = 0);

}  // namespace fathom
