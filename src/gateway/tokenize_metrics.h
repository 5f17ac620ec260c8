// How do requests come by their tokens?
//
// Threads  Any. One for the process; raised through references.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gateway/token_source.h"
#include "metrics/registry.h"

namespace fathom {

// Where a prompt's tokens came from.
enum class TokensFrom : uint8_t {
  kIds,      // the client sent them
  kCache,    // known from an earlier request
  kEngine,   // an engine was asked
  kPartial,  // an earlier turn of the conversation: a prefix of the prompt
  kNone,     // not known
};
constexpr size_t kTokensFrom = 5;
std::string_view Name(TokensFrom from);
std::string_view Name(TokenFailure failure);

class TokenizeMetrics {
 public:
  explicit TokenizeMetrics(Registry& registry);

  Counter& From(TokensFrom from) { return *from_[static_cast<size_t>(from)]; }
  Counter& Failures(TokenFailure failure) { return *failures_[static_cast<size_t>(failure)]; }

  Histogram& duration;  // of each question to an engine
  Gauge& cache_bytes;

 private:
  std::array<Counter*, kTokensFrom> from_{};
  std::array<Counter*, kTokenFailures> failures_{};
};

}  // namespace fathom
