// Any input is decoded or refused. In a decoded batch every event is accounted for, and the decoded
// events keep the documented limits.
#include <variant>

#include "base/check.h"
#include "codec/msgpack.h"
#include "router/events/msgpack_dialect.h"

namespace fathom {
namespace {

void CheckEvent(const CacheEvent& event) {
  const auto* stored = std::get_if<StoredEvent>(&event);
  if (stored == nullptr) return;
  CHECK(stored->block_size > 0 && stored->block_size <= kMaxBlockSize);
  const size_t positions = stored->tokens.size() - (stored->pairs ? 1 : 0);
  CHECK(!stored->tokens.empty() && positions % stored->block_size == 0);
  const size_t blocks = positions / stored->block_size;
  CHECK(blocks > 0 && stored->hashes.size() <= blocks);
  CHECK(stored->lora.size() <= kMaxNamespaceBytes && stored->salt.size() <= kMaxNamespaceBytes);
  uint32_t before = 0;
  for (const ExtraKey& extra : stored->extra) {
    CHECK(extra.block < blocks && extra.block >= before);
    before = extra.block;
  }
  CHECK(stored->kind != GroupKind::kWindow || stored->window > 0);
}

// The events of the envelope, counted without understanding them.
uint64_t CountEvents(std::string_view payload) {
  MsgpackReader in(payload);
  CHECK(in.TakeArray() && in.Skip());
  const auto count = in.TakeArray();
  CHECK(count.has_value());
  MsgpackReader whole(payload);
  CHECK(whole.Skip() && whole.left() == 0);
  return *count;
}

// Decoding in steps gives the same.
void CheckInSteps(std::string_view payload, const Result<EventBatch>& whole) {
  EventBatchReader reader(payload);
  Result<bool> checked = reader.Check(7);
  while (checked && !*checked) checked = reader.Check(7);
  CHECK(checked.has_value() == whole.has_value());
  if (!whole) return;
  EventBatch batch;
  std::optional<CacheEvent> event;
  while (reader.Next(event)) {
    if (event) batch.events.push_back(*std::move(event));
  }
  CHECK(batch.events == whole->events && reader.head().rank == whole->rank);
  CHECK(reader.head().malformed == whole->malformed && reader.head().ignored == whole->ignored);
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string_view payload(reinterpret_cast<const char*>(data), size);
  const Result<EventBatch> batch = DecodeEventBatch(payload);
  CheckInSteps(payload, batch);
  if (!batch) {
    CHECK(batch.error().blame == Blame::kPeer && !batch.error().what.empty());
    return 0;
  }
  CHECK(batch->events.size() + batch->ignored + batch->malformed == CountEvents(payload));
  CHECK((batch->malformed == 0) == batch->first_problem.empty());
  for (const CacheEvent& event : batch->events) CheckEvent(event);
  return 0;
}
