#include "router/gateway/response_id.h"

#include "codec/json_scan.h"
#include "router/gateway/sse_event.h"
#include "router/routing/response_pins.h"

namespace fathom {

std::optional<std::string> ReadResponseId(std::string_view json) {
  // A byte is written with at most six: \u0041.
  constexpr size_t kLongestWritten = 6 * ResponsePins::kLongestId + 2;
  if (!json.starts_with('"') || json.size() > kLongestWritten) return std::nullopt;
  auto id = JsonText(json);
  if (!id || id->empty() || id->size() > ResponsePins::kLongestId) return std::nullopt;
  return id;
}

std::optional<std::string> ResponseIdReader::OfWhole() const {
  const auto value = finder_.value();
  return value ? ReadResponseId(*value) : std::nullopt;
}

void ResponseIdReader::Read(std::string_view events) {
  while (!events.empty() && seeks()) {
    const SseEvent event(events);
    ++seen_;
    ReadEvent(event.data());
    events.remove_prefix(event.text().size());
  }
}

void ResponseIdReader::ReadEvent(std::string_view data) {
  JsonScanner members(data);
  for (;;) {
    const auto member = members.Next();
    if (!member || !*member) return;
    if (!JsonKeyIs((*member)->key, "response")) continue;
    JsonMemberFinder id("id");
    id.Feed((*member)->value);
    const auto value = id.value();
    if (value) id_ = ReadResponseId(*value);
  }
}

}  // namespace fathom
