#include "router/gateway/prompt_kind.h"

#include <algorithm>
#include <array>

namespace fathom {
namespace {

struct Telling {
  std::string_view word;  // with its quotes: inside a text they would be escaped
  PromptKind kind;
};

constexpr auto kTelling = std::to_array<Telling>({
    {R"("developer")", PromptKind::kDeveloper},
    {R"("tool_calls")", PromptKind::kTools},
    {R"("tool_call_id")", PromptKind::kTools},
    {R"("image_url")", PromptKind::kMedia},
    {R"("input_image")", PromptKind::kMedia},
    {R"("image")", PromptKind::kMedia},
    {R"("input_audio")", PromptKind::kMedia},
    {R"("audio_url")", PromptKind::kMedia},
    {R"("video_url")", PromptKind::kMedia},
    {R"("file")", PromptKind::kMedia},
});

// Of these words: most others are passed over at once.
constexpr std::string_view kBeginnings = "dtiavf";

// In the order in which they count.
PromptKind First(PromptKind a, PromptKind b) {
  if (a == PromptKind::kChat || b == PromptKind::kChat) return std::max(a, b);
  return std::min(a, b);
}

// One pass from quote to quote.
PromptKind KindOfMessages(std::string_view messages) {
  PromptKind kind = PromptKind::kChat;
  for (size_t at = messages.find('"'); at != std::string_view::npos;
       at = messages.find('"', at + 1)) {
    const std::string_view rest = messages.substr(at);
    if (rest.size() < 2 || !kBeginnings.contains(rest[1])) continue;
    for (const Telling& telling : kTelling) {
      if (rest.starts_with(telling.word)) kind = First(kind, telling.kind);
    }
  }
  return kind;
}

bool HasOptions(const PromptFields& parts) {
  return !parts.chat_template.empty() || !parts.chat_template_kwargs.empty() ||
         !parts.reasoning_effort.empty() || !parts.documents.empty() ||
         !parts.continue_final_message.empty() || !parts.add_generation_prompt.empty();
}

}  // namespace

PromptKind KindOf(const PromptFields& parts) {
  if (parts.api == PromptApi::kMessages) return PromptKind::kMessages;
  if (parts.api == PromptApi::kResponses) return PromptKind::kResponses;
  if (!parts.prompt.empty()) {
    return parts.prompt.starts_with('[') ? PromptKind::kIds : PromptKind::kText;
  }
  PromptKind kind = KindOfMessages(parts.messages);
  if (!parts.tools.empty()) kind = First(kind, PromptKind::kTools);
  if (HasOptions(parts)) kind = First(kind, PromptKind::kOptions);
  return kind;
}

std::string_view TextOrIds(const RequestFields& fields, Route route) {
  if (route == Route::kInferenceGenerate) return fields.token_ids;
  if (route != Route::kGenerate) return fields.parts.prompt;
  return fields.text.empty() ? fields.input_ids : fields.text;
}

}  // namespace fathom
