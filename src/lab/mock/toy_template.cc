#include "lab/mock/toy_template.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <iterator>

#include "codec/json_scan.h"

namespace fathom {
namespace {

bool IsRawText(std::string_view raw) { return raw.starts_with('"'); }
bool IsRawList(std::string_view raw) { return raw.starts_with('['); }

Result<std::string> TextOf(std::string_view name, std::string_view raw) {
  auto text = JsonText(raw);
  if (!text) return Fail(Blame::kCaller, "{} must be a string", name);
  return *std::move(text);
}

// {"type":"text","text":...}, or something that is not text.
Result<void> AppendPart(std::string& out, std::string_view raw) {
  if (IsRawText(raw)) {
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
  if (!IsRawList(raw)) return AppendPart(out, raw);
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

}  // namespace

Result<std::string> RenderToyChat(const ChatFields& chat) {
  if (!IsRawList(chat.messages)) return Fail(Blame::kCaller, "messages must be a list");
  const bool generates = chat.add_generation_prompt != "false";
  const bool continues = chat.continue_final_message == "true";
  if (generates && continues) {
    return Fail(Blame::kCaller,
                "Cannot set both `continue_final_message` and "
                "`add_generation_prompt` to True.");
  }
  std::string out;
  if (IsRawList(chat.tools)) out.append("<|system|>").append(chat.tools).append("<|end|>");
  JsonElements messages(chat.messages);
  auto next = messages.Next();
  while (next) {
    if (!next->starts_with('{')) return Fail(Blame::kCaller, "a message must be an object");
    TRY_VOID(AppendMessage(out, *next));
    next = messages.Next();
    if (next || !continues) out += "<|end|>";
  }
  if (generates) out += "<|assistant|>";
  return out;
}

}  // namespace fathom
