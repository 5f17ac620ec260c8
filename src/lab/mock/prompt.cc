#include "lab/mock/prompt.h"

#include "codec/json_scan.h"
#include "lab/mock/mock_tokenizer.h"
#include "text/tokens/token_ids.h"

namespace fathom {
namespace {

using Prompts = std::vector<std::vector<TokenId>>;

bool IsText(std::string_view raw) { return raw.starts_with('"'); }
bool IsList(std::string_view raw) { return raw.starts_with('['); }

// Empty where there are none that the engine would look at.
std::string_view ChatIds(const CompletionRequest& request, MockedEngine engine) {
  if (request.chat.api != PromptApi::kChat) return {};
  switch (engine) {
    case MockedEngine::kVllm:
      return {};
    case MockedEngine::kSglang:
      return request.input_ids;
    case MockedEngine::kTrtllm:
      return request.prompt_token_ids;
  }
  return {};
}

Result<std::vector<TokenId>> ReadIds(std::string_view raw, const MockTokenizer& tokenizer) {
  std::vector<TokenId> ids;
  TRY_VOID(AppendTokenIds(raw, ids));
  TRY_VOID(tokenizer.CheckIds(ids));
  return ids;
}

Result<std::vector<TokenId>> ReadChat(const CompletionRequest& request, const MockOptions& options,
                                      const MockTokenizer& tokenizer) {
  const std::string_view ids = ChatIds(request, options.engine);
  if (ids.empty()) return tokenizer.Chat(request.chat);
  if (!IsList(request.chat.messages)) return Fail(Blame::kCaller, "messages must be a list");
  return ReadIds(ids, tokenizer);
}

Result<Prompts> ReadList(const CompletionRequest& request, const MockTokenizer& tokenizer) {
  Prompts prompts;
  JsonElements elements(request.prompt);
  while (const auto element = elements.Next()) {
    if (IsText(*element)) {
      TRY(prompts.emplace_back(), tokenizer.Text(*element, request.chat.add_special_tokens));
    } else if (IsList(*element)) {
      TRY(prompts.emplace_back(), ReadIds(*element, tokenizer));
    } else {
      prompts.resize(1);
      TRY(prompts.front(), ReadIds(request.prompt, tokenizer));
      return prompts;
    }
  }
  return prompts;
}

}  // namespace

PromptForm FormOf(const CompletionRequest& request, bool chat, MockedEngine engine) {
  if (chat) return ChatIds(request, engine).empty() ? PromptForm::kChat : PromptForm::kIds;
  if (!IsList(request.prompt)) return PromptForm::kText;
  JsonElements elements(request.prompt);
  const auto first = elements.Next();
  return first && IsText(*first) ? PromptForm::kText : PromptForm::kIds;
}

Result<std::vector<std::vector<TokenId>>> PromptsOf(const CompletionRequest& request, bool chat,
                                                    const MockOptions& options) {
  const MockTokenizer tokenizer(options);
  if (!chat && IsList(request.prompt)) return ReadList(request, tokenizer);
  Prompts prompts(1);
  if (chat) {
    TRY(prompts.front(), ReadChat(request, options, tokenizer));
  } else {
    TRY(prompts.front(), tokenizer.Text(request.prompt, request.chat.add_special_tokens));
  }
  return prompts;
}

}  // namespace fathom
