#include "router/gateway/agent_usage.h"

#include "codec/json_scan.h"
#include "router/gateway/sse_event.h"

namespace fathom {
namespace {

// The member's value; empty if there is none.
std::string_view MemberOf(std::string_view object, std::string_view name) {
  std::string_view found;
  JsonScanner members(object);
  for (;;) {
    const auto member = members.Next();
    if (!member || !*member) return found;
    if (JsonKeyIs((*member)->key, name)) found = (*member)->value;
  }
}

}  // namespace

bool AgentUsage::Mentions(std::string_view events) const {
  if (form_ == AnswerForm::kGenerate) return !usage_ && events.contains(R"("meta_info")");
  return events.contains(R"("usage")");
}

void AgentUsage::Read(std::string_view events) {
  while (!events.empty()) {
    const SseEvent event(events);
    if (Mentions(event.text())) ReadEvent(event.data());
    events.remove_prefix(event.text().size());
  }
}

void AgentUsage::ReadEvent(std::string_view data) {
  Take(MemberOf(data, MemberIn(form_)));
  for (const std::string_view name : {"message", "response"}) {
    const std::string_view inner = MemberOf(data, name);
    if (inner.starts_with('{')) Take(MemberOf(inner, "usage"));
  }
}

// What is said without the cached tokens does not replace what was said with them.
void AgentUsage::Take(std::string_view usage) {
  if (!usage.starts_with('{')) return;
  const auto read = ReadUsage(usage);
  if (!read || (usage_ && usage_->cached_tokens && !read->cached_tokens)) return;
  usage_ = read;
}

}  // namespace fathom
