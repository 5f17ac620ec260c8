// Any bytes are decoded or refused. What is decoded keeps the documented bounds, and reads the same
// when it is written again.
#include <string_view>

#include "base/check.h"
#include "router/replicas/replica_message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const auto message =
      DecodeReplicaMessage(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!message) return 0;
  CHECK(IsReplicaName(message->group) && IsReplicaName(message->origin));
  if (const auto* const gauges = std::get_if<Gauges>(&message->content)) {
    for (const RankGauge& gauge : gauges->ranks) CHECK(gauge.queued >= 0 && gauge.queued <= 1e12);
  }
  const std::string bytes = Encode(*message);
  // A number may have been in a shorter form than ours.
  if (bytes.size() > ReplicaMessage::kMostBytes) return 0;
  const auto again = DecodeReplicaMessage(bytes);
  CHECK(again.has_value());
  // A kind that is not known loses its number.
  CHECK(*again == *message);
  CHECK(Encode(*again) == bytes);
  return 0;
}
