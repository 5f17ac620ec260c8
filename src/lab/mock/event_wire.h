// How does an engine of a certain version write its KV events down?
//
// vLLM and SGLang changed it from release to release; TensorRT-LLM has two ways of its own. A
// version that is not the first of its kind writes as the last one before it that changed
// something.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/msgpack_writer.h"
#include "lab/mock/kv_event.h"
#include "lab/mock/mock_options.h"

namespace fathom {

class EventWire {
 public:
  // `version` is one of vLLM (0.9.0 and later) or SGLang (0.5.6 and later), "poll" or "stream" of
  // TensorRT-LLM; empty: the newest, which is "poll" there. `byte_hashes`: 32 raw bytes instead of
  // integers, which vLLM has since 0.10.2.
  static Result<EventWire> Create(MockedEngine engine, std::string_view version, bool byte_hashes);

  // Asked for with POST /kv_cache_events, not published.
  bool polled() const { return polled_; }
  // Whether a replayed batch comes with its topic.
  bool replays_topic() const { return replays_topic_; }
  // A cache that was just made says so.
  bool begins_cleared() const { return engine_ == MockedEngine::kSglang; }

  // The payload of a published batch. A `block_size` other than 0 is claimed instead of the true
  // one.
  std::string Batch(const std::vector<KvEvent>& events, double unix_seconds, size_t rank,
                    uint32_t block_size) const;

  // The `data` of polled events. That the cache was cleared cannot be said there.
  static std::string PolledCreated(uint64_t blocks);
  static std::optional<std::string> Polled(const KvEvent& event);

 private:
  // Which fields an event has. Each release has those of the one before.
  struct Columns {
    bool rank = true;  // of the batch
    bool medium = false;
    bool lora_name = false;
    bool extra_keys = false;
    bool group = false;
    bool spec = false;
  };

  EventWire() = default;
  Result<void> BeVllm(std::string_view version);
  Result<void> BeSglang(std::string_view version);
  Result<void> BeTrtllm(std::string_view version);

  void Stored(MsgpackWriter& w, const BlocksStored& stored, uint32_t block_size) const;
  void StoredTail(MsgpackWriter& w, const BlocksStored& stored, bool salt) const;
  void Removed(MsgpackWriter& w, const BlockRemoved& removed) const;
  void Cleared(MsgpackWriter& w) const;
  static std::string PolledStored(const BlocksStored& stored);
  void Key(MsgpackWriter& w, std::string_view name) const;
  void Hash(MsgpackWriter& w, BlockHash hash) const;
  void Hashes(MsgpackWriter& w, const std::vector<BlockHash>& hashes) const;
  void Parent(MsgpackWriter& w, const BlocksStored& stored) const;
  void LoraId(MsgpackWriter& w, const BlocksStored& stored) const;
  void ExtraKeys(MsgpackWriter& w, const BlocksStored& stored) const;
  std::vector<KvEvent> Split(const std::vector<KvEvent>& events) const;

  MockedEngine engine_ = MockedEngine::kVllm;
  Columns columns_;
  bool maps_ = false;
  bool polled_ = false;
  bool replays_topic_ = false;
  bool byte_hashes_ = false;
  bool signed_hashes_ = false;
  bool page_by_page_ = false;  // an event per block
  bool salt_field_ = false;    // as a field of the event
};

}  // namespace fathom
