// How a mock engine behaves, and what it has been through.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace fathom {

enum class MockedEngine : uint8_t { kVllm, kSglang, kTrtllm };

struct MockOptions {
  std::string name;  // what its answers say; MockServer fills in "mock-<port>" if empty
  MockedEngine engine = MockedEngine::kVllm;
  std::vector<std::string> models = {"mock-model"};
  std::string api_key;   // asked for on /v1/* unless empty
  uint64_t tokens = 32;  // of an answer whose request sets no limit
  Duration first_token_delay = std::chrono::milliseconds(50);
  Duration token_interval = std::chrono::milliseconds(10);
  size_t chunk_bytes = 0;  // every token is padded to this length

  // Faults, all of them on POST /v1/* only.
  double fail_rate = 0;           // share of requests answered with 500
  double hang_rate = 0;           // share of requests never answered
  uint64_t die_after_tokens = 0;  // the connection is reset after so many; 0: never
  bool drain_abort = false;       // finish_reason "abort" and no tokens, as a draining vLLM
  bool busy = false;              // 503
  uint64_t seed = 1;              // of the dice for the rates
};

// Requests are POST /v1/*; each ends as exactly one of completed, failed and cancelled. Shared by
// the engines of one server, read by anybody: plain counts that order nothing else.
struct MockCounts {
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> in_flight{0};
  std::atomic<uint64_t> completed{0};
  std::atomic<uint64_t> failed{0};     // answered with an error, or broken off on purpose
  std::atomic<uint64_t> cancelled{0};  // the client left first
};

}  // namespace fathom
