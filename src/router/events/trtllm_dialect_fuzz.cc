// Any answer to a poll is decoded or refused. One poll with all events and one poll per event give
// the same result. The decoded events keep the documented limits, and memory stays bounded.
#include <string>
#include <utility>

#include "base/check.h"
#include "codec/json.h"
#include "router/events/trtllm_dialect.h"

namespace fathom {
namespace {

void CheckEvent(const CacheEvent& event) {
  if (const auto* removed = std::get_if<RemovedEvent>(&event)) CHECK(!removed->hashes.empty());
  const auto* stored = std::get_if<StoredEvent>(&event);
  if (stored == nullptr) return;
  CHECK(stored->block_size > 0 && !stored->hashes.empty());
  CHECK(stored->tokens.size() == stored->hashes.size() * stored->block_size);
  for (const ExtraKey& extra : stored->extra) CHECK(extra.block < stored->hashes.size());
}

std::vector<PolledEvent> DecodeOneByOne(const Json& body) {
  TrtllmDecoder decoder;
  std::vector<PolledEvent> all;
  for (const Json& event : *body.array()) {
    std::string alone = "[";
    event.WriteTo(alone);
    auto some = decoder.Decode(alone + "]");
    CHECK(some.has_value());
    for (PolledEvent& polled : *some) all.push_back(std::move(polled));
  }
  return all;
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  TrtllmDecoder decoder;
  const auto events = decoder.Decode(body);
  if (!events) {
    CHECK(events.error().blame == Blame::kPeer);
    return 0;
  }
  for (const PolledEvent& polled : *events) {
    CHECK(decoder.held(polled.rank) <= TrtllmDecoder::kMaxHeldEvents);
    for (const CacheEvent& event : polled.events) CheckEvent(event);
  }
  CHECK(DecodeOneByOne(*Json::Parse(body)) == *events);
  return 0;
}
