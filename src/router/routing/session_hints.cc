#include "router/routing/session_hints.h"

#include <xxhash.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace fathom {
namespace {

constexpr std::array<std::string_view, kHintKinds> kHintNames = {"x-claude-code-session-id",
                                                                 "thread-id",
                                                                 "x-dynamo-session-id",
                                                                 "prompt_cache_key",
                                                                 "metadata.user_id",
                                                                 "safety_identifier",
                                                                 "user"};

uint64_t HashOf(std::string_view text, uint64_t seed) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

Result<HintKind> ParseHint(std::string_view name) {
  const auto* const found = std::ranges::find(kHintNames, name);
  if (found != kHintNames.end()) return static_cast<HintKind>(found - kHintNames.begin());
  const auto nearest = Nearest(name, kHintNames);
  return Fail(Blame::kCaller, "session-hints: '{}' is not a session hint{}", name.substr(0, 100),
              nearest ? fmt::format("; did you mean '{}'?", *nearest) : std::string());
}

}  // namespace

std::string_view Name(HintKind kind) { return kHintNames[static_cast<size_t>(kind)]; }

Result<std::vector<HintKind>> ParseSessionHints(std::span<const std::string> names) {
  std::vector<HintKind> order;
  if (names.size() == 1 && names.front() == "none") return order;
  for (const std::string& name : names) {
    TRY(const HintKind kind, ParseHint(name));
    if (std::ranges::find(order, kind) == order.end()) order.push_back(kind);
  }
  return order;
}

uint64_t SessionHints::KeyOf(const About& about) const {
  uint64_t key = secret_ ^ (static_cast<uint64_t>(about.kind) << 1 | (about.has_prompt ? 1 : 0));
  for (const std::string_view text : {about.model, about.part, about.value}) {
    key = HashOf(text, key);
  }
  return key;
}

}  // namespace fathom
