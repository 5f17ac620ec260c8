#include "router/gateway/engine_tokenizer.h"

#include <algorithm>
#include <string>
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

using Outcome = TokenizeRoster::Outcome;

using Asked = PromptField::Asked;

// Of another API's request: it is read and written again on the loop, in some milliseconds.
constexpr size_t kMostConverted = size_t{1} << 20;

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

// A worker that has not answered by then is late.
Duration LateAfter(Duration patience) {
  return std::clamp<Duration>(patience / 4, std::chrono::milliseconds(10), std::chrono::seconds(1));
}

}  // namespace

Task<TokenAnswer> EngineTokenizer::Tokenize(const TokenQuestion& question, TimePoint deadline) {
  const auto race = std::make_shared<Race>();
  if (question.parts.api == PromptApi::kChat) {
    race->body = WriteBody(question);
  } else if (BytesOf(question.parts) > kMostConverted) {
    co_return std::unexpected(TokenFailure::kOverload);
  } else if (!AskAsChat(question, race->body)) {
    co_return std::unexpected(TokenFailure::kRefused);
  }
  race->may_have_none = question.parts.prompt == R"("")";
  race->deadline = deadline;
  for (bool hedged = false;;) {
    TokenFailure why = race->failure;
    if (!AskNext(question, race, why) && race->open == 0) co_return std::unexpected(why);
    hedged = hedged || race->open > 1;
    auto awaiting = Await(*race, hedged ? kNever : loop_.now() + LateAfter(roster_.patience()));
    co_await awaiting;
    if (race->decided) co_return *std::move(race->decided);
    if (race->open > 0) {
      hedged = hedged || race->tried.size() >= kAttempts;
      continue;
    }
    if (race->failure == TokenFailure::kTimeout) co_return std::unexpected(race->failure);
  }
}

bool EngineTokenizer::AskNext(const TokenQuestion& question, const std::shared_ptr<Race>& race,
                              TokenFailure& why) {
  if (race->tried.size() >= kAttempts) return false;
  const auto worker = roster_.Select(*question.fleet, question.model, race->tried, loop_.now());
  if (!worker) {
    const bool none = race->tried.empty() || worker.error() == TokenFailure::kUnsupported;
    if (none) why = worker.error();
    return false;
  }
  race->tried.push_back((*worker)->id());
  ++race->open;
  Spawn(Run(shared_from_this(), race, *worker));
  return true;
}

Task<void> EngineTokenizer::Run(std::shared_ptr<EngineTokenizer> self, std::shared_ptr<Race> race,
                                std::shared_ptr<Worker> worker) {
  auto asking = self->Ask(*worker, race->body, race->deadline);
  auto answer = co_await asking;
  // Some servers' /tokenize expects another body and finds no text in ours.
  if (answer && answer->empty() && !race->may_have_none) {
    answer = std::unexpected(TokenFailure::kUnsupported);
  }
  self->roster_.Report(worker->id(), OutcomeOf(answer), self->loop_.now());
  --race->open;
  if (answer || answer.error() == TokenFailure::kRefused) {
    if (!race->decided) race->decided = std::move(answer);
  } else {
    race->failure = answer.error();
  }
  if (WakeableWait* const wait = std::exchange(race->waiting, nullptr)) wait->WakeNow();
}

// Until there is an answer, no question is open any more, or the time is over.
Task<void> EngineTokenizer::Await(Race& race, TimePoint until) {
  while (race.open > 0 && !race.decided) {
    WakeableWait wait(loop_, until);
    race.waiting = &wait;
    const WakeCause cause = co_await wait;
    race.waiting = nullptr;
    if (cause == WakeCause::kTimedOut) co_return;
  }
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
