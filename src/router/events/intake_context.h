// What every stream of events shares.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "io/http/client_connection.h"
#include "io/net/address_range.h"
#include "io/net/loop.h"
#include "io/net/resolver.h"
#include "io/zmtp/byte_budget.h"
#include "io/zmtp/zmtp_client.h"
#include "router/events/poll_turn.h"
#include "router/events/snapshot_source.h"
#include "router/fleet/block_sizes.h"
#include "router/fleet/feed_board.h"
#include "router/fleet/worker.h"
#include "router/index/cache_index.h"

namespace fathom {

struct IntakeOptions {
  uint16_t port = 5557;  // default publisher port, plus the rank, of a worker that reports none
  std::string bind;      // endpoint for engines that connect to the router; empty: none
  std::vector<AddressRange> bind_allow;               // addresses that may connect; empty: all
  std::string bind_key;                               // that they must send; empty: none
  size_t memory = 256 << 20;                          // of all large messages together
  Duration replay_timeout = std::chrono::seconds(5);  // time without any batch
  Duration poll_interval = std::chrono::milliseconds(250);
  Duration look_again = std::chrono::milliseconds(500);  // when a worker has no event source yet
  // For another router's answer, and then for the batch that decides on it.
  Duration snapshot_wait = std::chrono::seconds(30);
};

struct IntakeContext {
  Loop& loop;
  ByteBudget& budget;
  Resolver& resolver;
  CacheIndex& index;
  Epochs::Seat& seat;  // of the loop's thread
  FeedBoard& board;
  BlockSizes& sizes;
  Log& log;
  const IntakeOptions options;
  SnapshotCounts& snapshot_counts;
  SnapshotSource* snapshots = nullptr;  // null: no other router is asked
  PollTurn* poll_turn = nullptr;        // null: no other router polls
  bool polling_ended = false;           // no poll may begin
  std::atomic<size_t> polls = 0;        // that are counted

  // To be held from before a poll is sent until its answer has been passed on.
  std::shared_ptr<void> CountPoll() {
    polls.fetch_add(1);
    return {this, [](IntakeContext* context) { context->polls.fetch_sub(1); }};
  }

  // Bounds on the memory that one engine can use here.
  static constexpr ZmtpLimits kStreamLimits{.frames = 1024, .message = 64 << 20, .command = 4096};
  static constexpr size_t kLargestAnswer = 64 << 20;
};

struct StreamOwner {
  std::shared_ptr<Worker> worker;
  std::shared_ptr<const Endpoint> endpoint;
};

}  // namespace fathom
