// What do the labels and annotations of a pod say of the engine in it?
//
//   fathom.io/role                  prefill, decode or both; else llm-d.ai/role
//   fathom.io/kv-events-port        where its cache events are
//   fathom.io/kv-events-replay-port
//   fathom.io/kv-events-topic
//
// Each may be a label or an annotation; a label counts first. The labels are kept for operators,
// without those that only name a revision; of the annotations those below fathom.io/ and llm-d.ai/
// and the bootstrap ports of SGLang and vLLM.
//
// Memory  At most kMaxLabels labels with kMaxBytes in all: Fathom's own and llm-d's first, then the
//         others in the order of their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "codec/json.h"

namespace fathom {

struct PodFacts {
  static constexpr size_t kMaxLabels = 64;
  static constexpr size_t kMaxBytes = 8 << 10;

  std::string role;  // prefill, decode, both; empty: not said, or another one
  std::optional<uint16_t> events_port;
  std::optional<uint16_t> replay_port;
  std::optional<std::string> topic;
  std::map<std::string, std::string> labels;

  static PodFacts Of(const Json& pod);

  friend bool operator==(const PodFacts&, const PodFacts&) = default;
};

}  // namespace fathom
