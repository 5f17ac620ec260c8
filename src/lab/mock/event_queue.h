// KV events of one rank that wait to be fetched, as TensorRT-LLM hands them out: asking takes them,
// and what nobody fetches in time makes room for what is newer, which shows in the event ids.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "codec/json.h"
#include "lab/mock/event_outlet.h"

namespace fathom {

class EventQueue final : public EventOutlet {
 public:
  // `rank` is told only by engines that have several. A restart may bring another number of blocks.
  EventQueue(uint64_t blocks, uint64_t blocks_after_restart, uint64_t window, size_t limit,
             std::optional<size_t> rank);

  void Add(const std::vector<KvEvent>& batch, BatchFate fate) override;
  void Restart() override;

  // Appends what there is to an array, and forgets it.
  void Drain(JsonWriter& out);

 private:
  struct Entry {
    uint64_t id;
    std::string data;
  };

  void Begin(uint64_t blocks);
  void Push(std::string data);

  const uint64_t blocks_after_restart_;
  const uint64_t window_;
  const size_t limit_;
  const std::optional<size_t> rank_;
  uint64_t next_ = 0;
  std::deque<Entry> entries_;
};

}  // namespace fathom
