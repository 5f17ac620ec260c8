#include "router/gateway/tokenize_wire.h"

#include <utility>

#include "base/text.h"
#include "codec/json_scan.h"
#include "router/gateway/chat_fields.h"
#include "text/chat/chat_texts.h"
#include "text/chat/messages_request.h"
#include "text/chat/responses_request.h"
#include "text/tokens/token_ids.h"

namespace fathom {
namespace {

using Asked = PromptField::Asked;

void AppendMember(std::string& object, std::string_view name, std::string_view value) {
  if (object.size() > 1) object += ',';
  object.append("\"").append(name).append("\":").append(value);
}

bool HasMember(std::string_view object, std::string_view name) {
  JsonScanner members(object);
  for (;;) {
    const auto member = members.Next();
    if (!member || !*member) return false;
    if (JsonKeyIs((*member)->key, name)) return true;
  }
}

// vLLM hands these members of a chat to its template beside the request's own arguments, and its
// /tokenize takes only the latter. Of a name that is there twice the last one counts.
std::string TemplateArguments(const PromptFields& parts) {
  const std::string_view own = parts.chat_template_kwargs;
  const size_t end = own.find_last_of('}');
  std::string object(own.starts_with('{') ? own.substr(0, end) : "{");
  while (object.size() > 1 && std::string_view(" \t\r\n").contains(object.back())) {
    object.pop_back();
  }
  for (const PromptField& field : kPromptFields) {
    const std::string_view value = parts.*field.value;
    const bool unset = value.empty() || value == R"("auto")";
    if (unset || field.vllm != Asked::kInTemplateArguments) continue;
    AppendMember(object, field.name, value);
  }
  if (!parts.reasoning_effort.empty() && !HasMember(own, "enable_thinking")) {
    AppendMember(object, "enable_thinking",
                 parts.reasoning_effort == R"("none")" ? "false" : "true");
  }
  return object + '}';
}

bool HasTemplateArguments(const TokenQuestion& question) {
  for (const PromptField& field : kPromptFields) {
    if (field.By(question.engine) != Asked::kInTemplateArguments) continue;
    if (!(question.parts.*field.value).empty()) return true;
  }
  return false;
}

std::string WriteBody(const TokenQuestion& question) {
  std::string body = "{";
  if (!question.model.empty()) {
    body += "\"model\":";
    AppendJsonString(body, question.model);
  }
  const bool adds = HasTemplateArguments(question);
  for (const PromptField& field : kPromptFields) {
    const std::string_view value = question.parts.*field.value;
    if (adds && field.value == &PromptFields::chat_template_kwargs) {
      AppendMember(body, field.name, TemplateArguments(question.parts));
    } else if (!value.empty() && field.By(question.engine) == Asked::kByName) {
      AppendMember(body, field.name, value);
    }
  }
  body += '}';
  return body;
}

// Another API's request, as a chat: no engine tokenizes it in its own form. What the engine has
// found out about its template at its start is not known here. False: it is no such request.
bool AskAsChat(const TokenQuestion& question, std::string& body) {
  EngineHabits habits;
  habits.thoughts = MarksOfParser(question.reasoning_parser.value_or(""));
  const ChatDialect dialect = DialectOf(question.engine);
  const ChatFields fields = ChatOf(question.parts);
  const bool responses = fields.api == PromptApi::kResponses;
  const auto source =
      responses ? ReadResponses(fields, dialect, habits) : ReadMessages(fields, dialect, habits);
  if (!source) return false;
  const ChatTexts texts = WriteChat(*source);
  TokenQuestion chat = question;
  chat.parts = {.messages = texts.messages,
                .tools = texts.tools,
                .chat_template_kwargs = texts.kwargs,
                .reasoning_effort = texts.reasoning_effort,
                .tool_choice = texts.tool_choice};
  if (texts.continue_final_message) {
    chat.parts.continue_final_message = "true";
    chat.parts.add_generation_prompt = "false";
  }
  if (responses) chat.parts.add_special_tokens = "true";
  body = WriteBody(chat);
  return true;
}

// {"count": 2, "max_model_len": 4096, "tokens": [1, 2], ...}
Result<std::vector<TokenId>> ReadTokens(std::string_view body) {
  std::vector<TokenId> tokens;
  std::string_view listed;
  std::string_view count;
  JsonScanner members(body);
  for (;;) {
    TRY(const auto member, members.Next());
    if (!member) break;
    if (JsonKeyIs(member->key, "tokens")) listed = member->value;
    if (JsonKeyIs(member->key, "count")) count = member->value;
  }
  TRY_VOID(AppendTokenIds(listed, tokens));
  if (!count.empty() && ParseDecimal(count) != tokens.size()) {
    return Fail(Blame::kPeer, "{} tokens, not {}", tokens.size(), count.substr(0, 20));
  }
  return tokens;
}

}  // namespace

std::optional<std::string> WriteTokenizeBody(const TokenQuestion& question) {
  std::string body;
  if (question.parts.api == PromptApi::kChat) return WriteBody(question);
  if (!AskAsChat(question, body)) return std::nullopt;
  return body;
}

TokenAnswer ReadTokenizeAnswer(const FetchAnswer& answer) {
  switch (answer.status) {
    case 200: {
      auto tokens = ReadTokens(answer.body);
      if (tokens) return *std::move(tokens);
      return std::unexpected(TokenFailure::kError);
    }
    case 404:
      // The endpoint is missing, unless the body shows that the endpoint does not have the model.
      return std::unexpected(answer.body.find("does not exist") != std::string::npos
                                 ? TokenFailure::kRefused
                                 : TokenFailure::kUnsupported);
    case 405:
    case 501:
      return std::unexpected(TokenFailure::kUnsupported);
    case 401:
    case 403:
    case 408:
    case 429:
      return std::unexpected(TokenFailure::kError);
    default:
      return std::unexpected(answer.status >= 400 && answer.status < 500 ? TokenFailure::kRefused
                                                                         : TokenFailure::kError);
  }
}

}  // namespace fathom
