// Polls TensorRT-LLM for the changes of its caches (POST /kv_cache_events).
//
// An answer removes its events from the engine's queue. Of several routers one polls, and passes on
// its answers (router/events/poll_turn.h): the stream applies its own and theirs alike, in the
// order of the events' ids (router/events/polled_order.h). A gap means that the engine's buffer
// overflowed or that an answer was lost in transit. There is no replay, so the rank is cleared.
//
// Beginning  If other routers follow the engine already, they are asked what its ranks hold, each
//            after one of its events. Until the answers have come, events wait in their order.
// Telling    A rank's snapshot has the number of its last event, and in place of fingerprints the
//            count of the engine's processes and the largest attention window.
// Threads  The intake's loop.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/repeat_limit.h"
#include "io/http/fetch.h"
#include "router/events/asked_snapshots.h"
#include "router/events/intake_context.h"
#include "router/events/polled_order.h"
#include "router/events/rank_feed.h"
#include "router/events/stream.h"
#include "router/events/tellable_rank.h"
#include "router/events/trtllm_dialect.h"

namespace fathom {

class PollStream final : public Stream, public std::enable_shared_from_this<PollStream> {
 public:
  static constexpr std::string_view kPath = "/kv_cache_events";

  // How a stream begins.
  struct Beginning {
    PolledView known;                  // of others
    std::optional<std::string> first;  // an answer that was already received, after `known`
    std::shared_ptr<void> counted;     // its poll
  };
  PollStream(IntakeContext& context, const StreamOwner& owner, Beginning beginning);

  Task<void> Run() override;
  // The ranks leave the index at once, even if a poll is still waiting for its answer.
  void Stop() override;
  void Tick() override;
  bool connected() const override { return up_; }
  void Heard(PolledWord word) override;
  std::shared_ptr<TellableRank> TellableOf(const RankLabel& rank) override;
  void ListTellable(std::vector<RankLabel>& ranks) override;

  // One poll over a connection of its own, to find out whether a worker answers polls.
  static Task<Result<std::string>> Ask(IntakeContext& context, const StreamOwner& owner);

 private:
  struct Rank final : TellableRank {
    Rank(PollStream& s, uint32_t n) : stream(s), number(n) {}
    Task<Result<std::string>> Export(size_t most) override;
    // What a snapshot reflects if it is taken now; nullopt: something is being applied.
    std::optional<StreamMark> Reflected() const;

    PollStream& stream;
    const uint32_t number;
    std::unique_ptr<RankFeed> feed;
    std::optional<uint64_t> next;  // that the decoder returns
    RepeatLimit gap_lines;
  };

  Task<void> TakeOver(std::shared_ptr<PollStream> self);
  Task<void> Adopt(std::shared_ptr<const HoldingSnapshot> snapshot);
  Task<bool> Import(Rank& rank, std::shared_ptr<const HoldingSnapshot> snapshot,
                    TrtllmDecoder::Past& past);
  // Something is being applied or told.
  bool busy() const { return exporting_ || order_.ready(); }
  bool IsMyTurn() const;
  void Rest();
  void TakeOwn(const PolledView& sent, std::string body);
  void PassOn(std::string body, bool polls);
  void Correct();
  // nullopt: it cannot be read, and its events are lost.
  std::optional<std::vector<TrtllmEvent>> Read(std::string_view body);
  void ReportUnreadable(std::string_view problem);
  void ReportMalformed(std::string_view problem);
  void BeginSettling();
  Task<void> Settle(std::shared_ptr<PollStream> self);
  void GiveUpLate();
  void Apply(PolledOrder::Step step);
  void Apply(const PolledEvent& event);
  void Restart();
  void Lose(uint32_t number, uint64_t lost);
  void SayLost(Rank& rank, uint32_t number, uint64_t lost);
  void ProveExcess();
  std::shared_ptr<Rank> SharedRankOf(uint32_t number);
  Rank& RankOf(uint32_t number) { return *SharedRankOf(number); }
  void SetConnected(bool up);
  void Doubt();

  IntakeContext& context_;
  const StreamOwner owner_;
  std::optional<std::string> first_;
  std::shared_ptr<void> first_counted_;
  std::optional<CatchUp::Share> catching_up_;  // until it is applied
  PolledOrder order_;
  TrtllmDecoder decoder_;
  std::map<uint32_t, std::shared_ptr<Rank>> ranks_;
  RepeatLimit malformed_lines_;
  Caller caller_;    // its connection also tells when the engine's process ends
  bool up_ = false;  // from its first answer on
  bool stopped_ = false;
  bool settling_ = false;
  bool taking_over_;                 // nothing is applied yet
  AskedSnapshots* asked_ = nullptr;  // while it does
  bool exporting_ = false;           // nothing is applied meanwhile
  TimePoint corrected_{};
};

}  // namespace fathom
