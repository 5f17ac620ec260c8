// Asks TensorRT-LLM, again and again, what has happened to its caches (POST /kv_cache_events).
//
// An answer takes the events out of the engine's queue, so there can be one such reader only. Event
// ids are consecutive per rank; a gap means that the engine's buffer overflowed or an answer was
// lost on its way, and there is no replay: the rank is emptied.
//
// Threads  The intake's loop.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "events/intake_context.h"
#include "events/rank_feed.h"
#include "events/stream.h"
#include "events/trtllm_dialect.h"

namespace fathom {

class PollStream final : public Stream {
 public:
  static constexpr std::string_view kPath = "/kv_cache_events";

  // `first` is an answer that has been received already.
  PollStream(IntakeContext& context, const StreamOwner& owner, std::string first);

  Task<void> Run() override;
  // Its ranks leave the index at once, even while an answer is on its way.
  void Stop() override {
    stopped_ = true;
    ranks_.clear();
  }
  void Tick() override;
  bool connected() const override { return up_; }

  // The question, for whoever wants to know whether it is answered.
  static Task<Result<std::string>> Ask(IntakeContext& context, const StreamOwner& owner);

 private:
  struct Rank {
    std::unique_ptr<RankFeed> feed;
    std::optional<uint64_t> next;
  };

  void Apply(std::string_view body);
  void Apply(const PolledEvent& event);
  void ProveExcess(uint32_t number);
  Rank& RankOf(uint32_t number);
  void SetConnected(bool up);

  IntakeContext& context_;
  const StreamOwner owner_;
  std::string first_;
  TrtllmDecoder decoder_;
  std::map<uint32_t, Rank> ranks_;
  uint64_t malformed_ = 0;
  bool up_ = true;
  bool stopped_ = false;
};

}  // namespace fathom
