#include "mock/prompt.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <iterator>

#include "codec/json_scan.h"
#include "mock/toy_tokenizer.h"
#include "tokens/token_ids.h"

namespace fathom {
namespace {

using Prompts = std::vector<std::vector<TokenId>>;

bool IsText(std::string_view raw) { return raw.starts_with('"'); }
bool IsList(std::string_view raw) { return raw.starts_with('['); }

Result<std::string> TextOf(std::string_view name, std::string_view raw) {
  auto text = JsonText(raw);
  if (!text) return Fail(Blame::kCaller, "{} must be a string", name);
  return *std::move(text);
}

// {"type":"text","text":...}, or something that is not text.
Result<void> AppendPart(std::string& out, std::string_view raw) {
  if (IsText(raw)) {
    TRY(const std::string text, TextOf("content", raw));
    out += text;
    return {};
  }
  std::string kind = "part";
  JsonScanner members(raw);
  for (;;) {
    TRY(const auto member, members.Next());
    if (!member) break;
    if (JsonKeyIs(member->key, "type")) {
      TRY(kind, TextOf("type", member->value));
    } else if (JsonKeyIs(member->key, "text")) {
      TRY(const std::string text, TextOf("text", member->value));
      out += text;
      return {};
    }
  }
  fmt::format_to(std::back_inserter(out), "[{}:{:016x}]", kind,
                 XXH3_64bits(raw.data(), raw.size()));
  return {};
}

Result<void> AppendContent(std::string& out, std::string_view raw) {
  if (raw == "null" || raw.empty()) return {};
  if (!IsList(raw)) return AppendPart(out, raw);
  JsonElements parts(raw);
  while (const auto part = parts.Next()) TRY_VOID(AppendPart(out, *part));
  return {};
}

// Everything but the end token.
Result<void> AppendMessage(std::string& out, std::string_view raw) {
  std::string role = "user";
  std::string_view content;
  std::string_view tool_calls;
  JsonScanner members(raw);
  for (;;) {
    TRY(const auto member, members.Next());
    if (!member) break;
    if (JsonKeyIs(member->key, "role")) {
      TRY(role, TextOf("role", member->value));
    } else if (JsonKeyIs(member->key, "content")) {
      content = member->value;
    } else if (JsonKeyIs(member->key, "tool_calls") && member->value != "null") {
      tool_calls = member->value;
    }
  }
  out.append("<|").append(role).append("|>");
  TRY_VOID(AppendContent(out, content));
  out += tool_calls;
  return {};
}

Result<Prompts> PromptsOfList(std::string_view raw) {
  Prompts prompts;
  JsonElements elements(raw);
  while (const auto element = elements.Next()) {
    if (IsText(*element)) {
      TRY(const std::string text, TextOf("prompt", *element));
      prompts.push_back(Tokenize(text));
    } else if (IsList(*element)) {
      TRY_VOID(AppendTokenIds(*element, prompts.emplace_back()));
    } else {
      prompts.assign(1, {});
      TRY_VOID(AppendTokenIds(raw, prompts.front()));
      return prompts;
    }
  }
  return prompts;
}

}  // namespace

Result<std::string> RenderChat(const ChatBody& chat) {
  if (!IsList(chat.messages)) return Fail(Blame::kCaller, "messages must be a list");
  if (chat.add_generation_prompt && chat.continue_final_message) {
    return Fail(Blame::kCaller,
                "Cannot set both `continue_final_message` and "
                "`add_generation_prompt` to True.");
  }
  std::string out;
  if (IsList(chat.tools)) out.append("<|system|>").append(chat.tools).append("<|end|>");
  JsonElements messages(chat.messages);
  auto next = messages.Next();
  while (next) {
    if (!next->starts_with('{')) return Fail(Blame::kCaller, "a message must be an object");
    TRY_VOID(AppendMessage(out, *next));
    next = messages.Next();
    if (next || !chat.continue_final_message) out += "<|end|>";
  }
  if (chat.add_generation_prompt) out += "<|assistant|>";
  return out;
}

Result<std::vector<std::vector<TokenId>>> PromptsOf(const CompletionRequest& request, bool chat) {
  if (chat) {
    const ChatBody body{.messages = request.messages,
                        .tools = request.tools,
                        .add_generation_prompt = request.add_generation_prompt,
                        .continue_final_message = request.continue_final_message};
    TRY(const std::string text, RenderChat(body));
    return Prompts{Tokenize(text)};
  }
  if (IsList(request.prompt)) return PromptsOfList(request.prompt);
  TRY(const std::string text, TextOf("prompt", request.prompt));
  return Prompts{Tokenize(text)};
}

}  // namespace fathom
