// What has this router placed on each rank, for the others to hear, and what have they?
//
// Told     A rank whose requests or prefill work changed is told with the next tick. Context that
//          merely grows is told when it has moved by a sixteenth. Once per kWhole everything is
//          told in ranges, spread over that time, so that a lost message does not matter for
//          longer; to a newcomer at once.
// Heard    Each origin's word counts by itself (router/replicas/foreign_loads.h); the sum of all
//          goes to the rank's load (RankLoad::SetForeign), where choices see it.
// Workers  A worker that leaves the fleet is told to be idle; one that comes gets what the others
//          have said of it before.
// Clocks   Times are told as durations. None is compared with another machine's.
//
// Threads  The replicas' loop.
// Cost     Grows with the ranks that changed, and with the blocks of 32 ranks. All ranks are looked
//          at when workers or ranks come or go, at most every kLayout, and once per kWhole.
// Memory   About 150 bytes per rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/fleet/engine_speed.h"
#include "router/fleet/fleet.h"
#include "router/replicas/foreign_loads.h"
#include "router/replicas/replica_guest.h"

namespace fathom {

class LoadExchange final : public ReplicaGuest {
 public:
  static constexpr Duration kWhole = std::chrono::seconds(1);
  static constexpr Duration kLayout = std::chrono::milliseconds(50);
  // Ranks in a message: about 30 KiB.
  static constexpr size_t kMostTold = 512;

  // All must outlive it. `speed` says when prefills are over that show no first byte.
  LoadExchange(const Fleet& fleet, const EngineSpeed& speed, ReplicaVoice& voice);

  void Heard(const ReplicaMessage& message, TimePoint now) override;
  void Tick(TimePoint now) override;
  void Joined(const std::string& origin, TimePoint now) override;
  void Left(const std::string& origin, TimePoint now) override;

  // What an origin has in flight, as it says.
  ForeignLoads::Total Totals(std::string_view origin) const { return foreign_.Of(origin); }

 private:
  // A rank, or the requests of a worker without one.
  struct Entry {
    RankLabel label;
    std::shared_ptr<Worker> worker;
    Rank* rank = nullptr;  // null: kNoRank
    // As told last.
    double queued = 0;
    uint64_t context = 0;
    uint32_t requests = 0;
    uint32_t waiting = 0;
    // Of the others, as far as it is part of the worker's in_flight_elsewhere.
    uint32_t elsewhere = 0;
  };
  // The ranks of a block, by their place there.
  struct Watched {
    std::shared_ptr<LoadBlock> block;
    std::vector<uint32_t> entries;  // kNone: not of this fleet any more
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  // The list of ranks.
  bool LayoutChanged(TimePoint now);
  void FollowLayout(TimePoint now);
  static void TakeOver(const Entry& old, Entry& entry);
  void WatchBlocks();
  Entry* Find(const RankLabel& label);

  // Telling.
  static RankGauge GaugeOf(const Entry& entry, TimePoint now);
  static bool IsNews(const Entry& entry, const RankGauge& gauge);
  void Look(Entry& entry, TimePoint now);
  void LookAtTouched(TimePoint now);
  void LookAround(TimePoint now);
  void EndSilent(const Watched& watched, TimePoint now);
  static void Note(Entry& entry, const RankGauge& gauge);
  void Add(const RankGauge& gauge);
  void Flush();
  void TellWhole(TimePoint now);

  void SetForeign(Entry& entry, const ForeignLoad& sum);

  const EngineSpeed& speed_;
  ReplicaVoice& voice_;
  FleetReader reader_;
  ForeignLoads foreign_;

  std::vector<Entry> entries_;  // by label
  std::vector<Watched> blocks_;
  std::vector<uint32_t> loose_;    // entries without a block
  std::vector<uint32_t> workers_;  // entries of workers
  std::shared_ptr<const FleetSnapshot> fleet_;
  uint64_t layout_ = 0;  // of the fleet's pulse
  TimePoint followed_{};

  size_t round_ = 0;  // ticks
  Gauges news_;
  RankLabel whole_from_{};  // where the next range begins
  TimePoint whole_due_{};
  bool hurry_ = false;  // a newcomer waits for it: a range per tick
};

}  // namespace fathom
