#include "router/gateway/engine_tokenizer.h"

#include <string>

#include "base/text.h"
#include "codec/json_scan.h"
#include "text/tokens/token_ids.h"

namespace fathom {
namespace {

using Outcome = TokenizeRoster::Outcome;

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

std::string BodyOf(const TokenQuestion& question) {
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

TokenAnswer Judge(const FetchAnswer& answer) {
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

Outcome OutcomeOf(const TokenAnswer& answer) {
  if (answer || answer.error() == TokenFailure::kRefused) return Outcome::kAnswered;
  return answer.error() == TokenFailure::kUnsupported ? Outcome::kUnsupported : Outcome::kFailed;
}

}  // namespace

Task<TokenAnswer> EngineTokenizer::Tokenize(const TokenQuestion& question, TimePoint deadline) {
  const std::string body = BodyOf(question);
  std::vector<WorkerId> tried;
  TokenFailure failure = TokenFailure::kError;
  while (tried.size() < kAttempts) {
    const auto worker = roster_.Select(*question.fleet, question.model, tried, loop_.now());
    if (!worker) {
      const bool nobody = tried.empty() || worker.error() == TokenFailure::kUnsupported;
      co_return std::unexpected(nobody ? worker.error() : failure);
    }
    auto asking = Ask(**worker, body, deadline);
    auto answer = co_await asking;
    // Some servers' /tokenize expects another body and finds no text in ours.
    if (answer && answer->empty() && question.parts.prompt != R"("")") {
      answer = std::unexpected(TokenFailure::kUnsupported);
    }
    roster_.Report((*worker)->id(), OutcomeOf(answer), loop_.now());
    if (answer || answer.error() == TokenFailure::kRefused) co_return answer;
    failure = answer.error();
    if (failure == TokenFailure::kTimeout) break;
    tried.push_back((*worker)->id());
  }
  co_return std::unexpected(failure);
}

Task<TokenAnswer> EngineTokenizer::Ask(const Worker& worker, std::string_view body,
                                       TimePoint deadline) {
  auto posting = calls_.Post(worker, "/tokenize", body, kMaxAnswer, deadline);
  const auto answer = co_await posting;
  if (answer) co_return Judge(*answer);
  co_return std::unexpected(loop_.now() >= deadline ? TokenFailure::kTimeout
                                                    : TokenFailure::kError);
}

}  // namespace fathom
