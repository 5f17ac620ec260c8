#include "router/gateway/answer_screen.h"

#include <cstring>
#include <optional>

#include "codec/json.h"
#include "codec/json_leaves.h"
#include "codec/sse.h"
#include "router/gateway/sse_event.h"

namespace fathom {
namespace {

constexpr std::string_view kAbort = "\"abort\"";
constexpr std::string_view kRole = "\"role\"";

// Faster than string_view::find, which stops at every quotation mark, and JSON has many.
bool Contains(std::string_view text, std::string_view word) {
  return !text.empty() && memmem(text.data(), text.size(), word.data(), word.size()) != nullptr;
}

bool HasText(const Json* holder) {
  if (holder == nullptr) return false;
  for (const std::string_view key :
       {"content", "text", "reasoning_content", "reasoning", "refusal"}) {
    const Json* const text = holder->Find(key);
    if (text != nullptr && text->string() != nullptr && !text->string()->empty()) return true;
  }
  for (const std::string_view key : {"function_call", "audio"}) {
    const Json* const part = holder->Find(key);
    if (part != nullptr && part->object() != nullptr) return true;
  }
  const Json* const calls = holder->Find("tool_calls");
  return calls != nullptr && calls->array() != nullptr && !calls->array()->empty();
}

// For one completion object (or chunk): text, or a finish reason other than "abort", is an answer.
Screening ScreenObject(std::string_view json) {
  const auto parsed = Json::Parse(json);
  const Json* const choices = parsed ? parsed->Find("choices") : nullptr;
  if (choices == nullptr || choices->array() == nullptr || choices->array()->empty()) {
    return Screening::kPass;
  }
  bool aborted = false;
  for (const Json& choice : *choices->array()) {
    if (HasText(&choice) || HasText(choice.Find("message")) || HasText(choice.Find("delta"))) {
      return Screening::kPass;
    }
    const Json* const reason = choice.Find("finish_reason");
    if (reason == nullptr || reason->is_null()) continue;
    if (reason->string() == nullptr || *reason->string() != "abort") return Screening::kPass;
    aborted = true;
  }
  return aborted ? Screening::kEmptyAbort : Screening::kWait;
}

class AnnouncementReader final : public JsonLeaves {
 public:
  bool announces() const { return announces_ && !background_; }

 private:
  void OnLeaf(std::string_view value) override {
    if (At({"type"})) {
      for (const std::string_view type : {R"("message_start")", R"("ping")",
                                          R"("response.created")", R"("response.in_progress")"}) {
        announces_ = announces_ || value == type;
      }
    } else if (At({"response", "background"})) {
      background_ = value == "true";
    }
  }

  bool announces_ = false;
  bool background_ = false;
};

bool IsAnnouncement(std::string_view data) {
  AnnouncementReader reader;
  reader.Feed(data);
  return reader.announces();
}

}  // namespace

Screening ScreenAgentEvents(std::string_view events) {
  // Most first events are announcements; the search for these words decides about the others.
  if (!Contains(events, R"("message_start")") && !Contains(events, R"("response.created")")) {
    return Screening::kPass;
  }
  while (!events.empty()) {
    const SseEvent event(events);
    if (!event.data().empty() && !IsAnnouncement(event.data())) return Screening::kPass;
    events.remove_prefix(event.text().size());
  }
  return Screening::kWait;
}

Screening ScreenJson(std::string_view body) {
  if (!Contains(body, kAbort)) return Screening::kPass;
  const Screening found = ScreenObject(body);
  return found == Screening::kEmptyAbort ? found : Screening::kPass;
}

Screening ScreenEvents(std::string_view events) {
  // These two searches decide nearly every stream: it passes, or waits for its second event.
  if (!Contains(events, kAbort) && !Contains(events, kRole)) return Screening::kPass;
  SseReader reader;
  reader.Feed(events);
  Screening verdict = Screening::kPass;
  for (std::optional<std::string_view> data; (data = reader.Next());) {
    verdict = ScreenObject(*data);
    if (verdict != Screening::kWait) return verdict;
  }
  return verdict;
}

}  // namespace fathom
