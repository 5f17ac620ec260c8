#include "router/gateway/hint_of_request.h"

#include "codec/json_scan.h"

namespace fathom {
namespace {

std::string_view HeaderValue(const HeaderList& headers, HeaderName name) {
  const Header* const header = headers.Find(name);
  return header == nullptr ? std::string_view() : header->value;
}

// Escapes stay: a client writes the same value in the same way each time.
std::string_view InsideQuotes(std::string_view value) {
  const bool text = value.size() > 2 && value.starts_with('"');
  return text ? value.substr(1, value.size() - 2) : std::string_view();
}

std::string_view UserIdIn(std::string_view metadata) {
  if (!metadata.starts_with('{') || metadata.size() > kLongestMetadata) return {};
  std::string_view found;
  JsonScanner members(metadata);
  for (;;) {
    const auto member = members.Next();
    if (!member || !*member) return InsideQuotes(found);
    if (JsonKeyIs((*member)->key, "user_id")) found = (*member)->value;
  }
}

HintOfRequest HintOf(HintKind kind, const HeaderList& headers, const RequestFields& fields) {
  switch (kind) {
    case HintKind::kClaudeCodeSession:
      // Its agents have conversations of their own.
      return {kind, HeaderValue(headers, HeaderName::kClaudeCodeSessionId),
              HeaderValue(headers, HeaderName::kClaudeCodeAgentId)};
    case HintKind::kCodexThread:
      return {kind, HeaderValue(headers, HeaderName::kThreadId)};
    case HintKind::kDynamoSession:
      return {kind, HeaderValue(headers, HeaderName::kDynamoSessionId)};
    case HintKind::kPromptCacheKey:
      return {kind, InsideQuotes(fields.prompt_cache_key)};
    case HintKind::kMetadataUser: {
      // Claude Code writes the session into it.
      const std::string_view user = UserIdIn(fields.metadata);
      return {kind, user, {}, user.contains("session")};
    }
    case HintKind::kSafetyIdentifier:
      return {kind, InsideQuotes(fields.safety_identifier), {}, false};
    case HintKind::kUser:
      break;
  }
  return {HintKind::kUser, InsideQuotes(fields.user), {}, false};
}

}  // namespace

std::optional<HintOfRequest> FindHint(std::span<const HintKind> order, const HeaderList& headers,
                                      const RequestFields& fields) {
  for (const HintKind kind : order) {
    const HintOfRequest hint = HintOf(kind, headers, fields);
    if (hint.value.empty() || hint.value.size() + hint.part.size() > kLongestHint) continue;
    return hint;
  }
  return std::nullopt;
}

}  // namespace fathom
