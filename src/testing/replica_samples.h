// One message content of each kind, with every field set.
#pragma once

#include <string>
#include <vector>

#include "router/replicas/replica_message.h"

namespace fathom {

inline std::vector<ReplicaMessage::Content> SampleReplicaContents() {
  const RankLabel rank{.worker = 0xfeedfacecafebeef, .dp_rank = 3};
  const RankGauge gauge{.rank = rank,
                        .queued = 1234.5,
                        .oldest = 1000.25,
                        .busy_ms = 250,
                        .context = 1 << 20,
                        .requests = 7,
                        .waiting = 2};
  return {
      ReplicaPresence{.interval_ms = 1000,
                      .url = "http://10.0.0.7:8000",
                      .models = {"meta-llama/*", "qwen"},
                      .informed = true},
      Gauges{.whole = std::nullopt, .ranks = {gauge, {.rank = {.worker = 9, .dp_rank = 0}}}},
      Gauges{.whole = Gauges::Range{.from = {.worker = 0, .dp_rank = 0},
                                    .to = {.worker = ~uint64_t{0}, .dp_rank = ~uint32_t{0}}},
             .ranks = {gauge}},
      SentPromptsTold{
          .whole = true,
          .prompts = {{.id = 5,
                       .rank = rank,
                       .believed_ms = 9000,
                       .marks = {{.key = 77, .tokens = 64}, {.key = 78, .tokens = 128}}},
                      {.id = 6, .rank = rank, .believed_ms = 0, .marks = {}}}},
      SessionBindings{{{.session = 1, .worker = 2, .clock = 3, .idle_ms = 4}}},
      ResponsePinsTold{{{.response = 11, .rank = rank, .tokens = 12, .idle_ms = 13}}},
      PolledAnswer{
          .worker = 21, .part = 1, .parts = 3, .answer = 22, .bytes = std::string("\0[{}]\xff", 6)},
      Challenge{.to = "fathom-1", .incarnation = 31, .nonce = 32},
      Proof{.to = "fathom-2", .nonce = 33},
      Ask{.to = "fathom-3", .question = 41, .about = "rank", .rank = rank, .from = 42},
      Piece{.to = "fathom-4",
            .question = 51,
            .piece = 52,
            .pieces = 53,
            .bytes = std::string("\x00\x01\xfe", 3)},
  };
}

}  // namespace fathom
