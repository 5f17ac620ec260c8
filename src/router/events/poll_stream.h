// Polls TensorRT-LLM for the changes of its caches (POST /kv_cache_events).
//
// An answer removes its events from the engine's queue, so only one reader is possible. Event ids
// are consecutive per rank. A gap means that the engine's buffer overflowed or that an answer was
// lost in transit. There is no replay, so the rank is cleared.
//
// Threads  The intake's loop.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/repeat_limit.h"
#include "io/http/fetch.h"
#include "router/events/intake_context.h"
#include "router/events/rank_feed.h"
#include "router/events/stream.h"
#include "router/events/trtllm_dialect.h"

namespace fathom {

class PollStream final : public Stream {
 public:
  static constexpr std::string_view kPath = "/kv_cache_events";

  // `first` is an answer that was already received.
  PollStream(IntakeContext& context, const StreamOwner& owner, std::string first);

  Task<void> Run() override;
  // The ranks leave the index at once, even if a poll is still waiting for its answer.
  void Stop() override {
    stopped_ = true;
    ranks_.clear();
  }
  void Tick() override;
  bool connected() const override { return up_; }

  // One poll over a connection of its own, to find out whether a worker answers polls.
  static Task<Result<std::string>> Ask(IntakeContext& context, const StreamOwner& owner);

 private:
  struct Rank {
    std::unique_ptr<RankFeed> feed;
    std::optional<uint64_t> next;
    RepeatLimit gap_lines;
  };

  Task<void> Apply(std::string_view body);
  void Apply(const PolledEvent& event);
  void ReportMalformed(std::string_view problem);
  void SayLost(Rank& rank, uint32_t number, uint64_t lost);
  void ProveExcess(uint32_t number);
  Rank& RankOf(uint32_t number);
  void SetConnected(bool up);
  void Doubt();

  IntakeContext& context_;
  const StreamOwner owner_;
  std::string first_;
  std::optional<CatchUp::Share> catching_up_;  // until it is applied
  TrtllmDecoder decoder_;
  std::map<uint32_t, Rank> ranks_;
  RepeatLimit malformed_lines_;
  Caller caller_;    // its connection also tells when the engine's process ends
  bool up_ = false;  // from its first answer on
  bool stopped_ = false;
};

}  // namespace fathom
