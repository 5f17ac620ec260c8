// What every stream of events shares.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "fleet/block_sizes.h"
#include "fleet/feed_board.h"
#include "fleet/worker.h"
#include "http/client_connection.h"
#include "index/cache_index.h"
#include "net/loop.h"
#include "net/resolver.h"
#include "net/zmq.h"

namespace fathom {

struct IntakeOptions {
  uint16_t port = 5557;  // where a worker that says nothing is expected to publish, plus the rank
  std::string bind;      // for engines that connect to the router; empty: none does
  Duration replay_timeout = std::chrono::seconds(5);  // without a single batch
  Duration poll_interval = std::chrono::milliseconds(250);
  Duration look_again = std::chrono::milliseconds(500);  // at a worker whose events are not found
};

struct IntakeContext {
  Loop& loop;
  ZmqContext& zmq;
  Resolver& resolver;
  CacheIndex& index;
  Epochs::Seat& seat;  // of the loop's thread
  FeedBoard& board;
  BlockSizes& sizes;
  Log& log;
  const IntakeOptions options;

  // Bounds of what an engine may make us keep.
  static constexpr int kMostMessagesWaiting = 16384;
  static constexpr int64_t kLargestMessage = 64 << 20;
  static constexpr size_t kLargestAnswer = 64 << 20;

  ZmqOptions SocketOptions() const {
    return {.receive_limit = kMostMessagesWaiting, .max_message = kLargestMessage};
  }
};

// A worker as its streams see it.
struct StreamOwner {
  std::shared_ptr<Worker> worker;
  std::shared_ptr<const Endpoint> endpoint;
};

}  // namespace fathom
