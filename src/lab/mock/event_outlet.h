// The way on which one rank's KV events leave a mock engine.
#pragma once

#include <vector>

#include "lab/mock/kv_event.h"

namespace fathom {

// What happens to a batch. It takes its sequence number in any case.
struct BatchFate {
  bool published = true;
  bool replayable = true;
};

class EventOutlet {
 public:
  virtual ~EventOutlet() = default;

  virtual void Add(const std::vector<KvEvent>& batch, BatchFate fate) = 0;
  // As if the process had died and come back: an empty cache, numbers from 0, nothing to replay.
  virtual void Restart() = 0;
};

}  // namespace fathom
