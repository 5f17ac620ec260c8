// How do requests get their tokens?
//
// Threads  Any. One for the process; raised through references.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "metrics/registry.h"
#include "router/gateway/token_source.h"
#include "text/chat/inexact.h"

namespace fathom {

// Where a prompt's tokens came from.
enum class TokensFrom : uint8_t {
  kIds,         // the client sent them
  kCache,       // an earlier answer of an engine
  kFiles,       // the model's own files, in this process
  kEngine,      // an engine was asked
  kFilesPart,   // the beginning of the prompt, from the files
  kEnginePart,  // the beginning of the prompt, from an engine's answer for an earlier turn
  kText,        // there are none, but its text was compared with earlier ones
  kNone,        // not known
};
constexpr size_t kTokensFrom = 8;
// In decisions: the source, whether it gave all tokens or the beginning.
std::string_view Name(TokensFrom from);
std::string_view Name(TokenFailure failure);

class TokenizeMetrics {
 public:
  explicit TokenizeMetrics(Registry& registry);

  Counter& From(TokensFrom from) { return *from_[static_cast<size_t>(from)]; }
  Counter& Failures(TokenFailure failure) { return *failures_[static_cast<size_t>(failure)]; }

  Counter& InexactFor(Inexact why) { return *inexact_[static_cast<size_t>(why)]; }

  Histogram& duration;        // of each question to an engine
  Histogram& local_duration;  // of each prompt in this process
  Gauge& cache_bytes;
  Gauge& prefix_bytes;

 private:
  std::array<Counter*, kTokensFrom> from_{};
  std::array<Counter*, kTokenFailures> failures_{};
  std::array<Counter*, kInexact> inexact_{};
};

}  // namespace fathom
