// What a mock engine does with POST /v1/*, and with the other routes of inference.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "codec/json_scan.h"
#include "lab/mock/generate_answer.h"
#include "lab/mock/mock_engine.h"
#include "lab/mock/pages.h"
#include "lab/mock/prompt.h"
#include "lab/mock/request_limits.h"

namespace fathom {
namespace {

constexpr std::string_view kBusy =
    "The engine is currently busy and cannot accept the request. Please retry later or send it to "
    "a different instance.";

int64_t SecondsNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// What a model that generates text does not have, and other kinds of models do.
bool IsEchoed(std::string_view path) {
  static constexpr std::array<std::string_view, 10> kOthers = {
      "/v1/score",  "/v1/rerank", "/v1/classify", "/v1/pooling", "/v1/audio",
      "/v1/images", "/score",     "/rerank",      "/classify",   "/pooling"};
  return std::ranges::any_of(kOthers, [&](std::string_view begin) {
    return path == begin || (path.starts_with(begin) && path[begin.size()] == '/');
  });
}

std::string_view IdPrefix(MockedEngine engine, MockRoute route) {
  switch (route) {
    case MockRoute::kChat:
      return "chatcmpl-";
    case MockRoute::kCompletions:
      return "cmpl-";
    case MockRoute::kEmbeddings:
      return "embd-";
    case MockRoute::kMessages:
    case MockRoute::kCountTokens:
      return engine == MockedEngine::kVllm ? "chatcmpl-" : "msg_";
    case MockRoute::kGenerate:
      return engine == MockedEngine::kVllm ? "generate-tokens-" : "";
    case MockRoute::kResponses:
    case MockRoute::kTokenize:
    case MockRoute::kDetokenize:
    case MockRoute::kOther:
      break;
  }
  return "resp_";
}

// Whether a prompt comes by this route that is no chat.
bool HasPlainPrompt(MockRoute route) {
  return route == MockRoute::kCompletions || route == MockRoute::kGenerate;
}

// In whose form a chat comes by this route; nothing if it is none.
std::optional<PromptApi> ApiOf(MockRoute route) {
  switch (route) {
    case MockRoute::kChat:
      return PromptApi::kChat;
    case MockRoute::kMessages:
    case MockRoute::kCountTokens:
      return PromptApi::kMessages;
    case MockRoute::kResponses:
      return PromptApi::kResponses;
    default:
      return std::nullopt;
  }
}

Answer ResponseNotFound(MockedEngine engine, std::string_view id) {
  return RefusalAnswer(engine, MockRoute::kResponses,
                       {.status = 404,
                        .type = "invalid_request_error",
                        .message = fmt::format("Response with id '{}' not found.", id),
                        .param = "response_id"});
}

// The items of an input; a text is one of the user.
void AppendItems(std::string_view input, std::string& items) {
  const auto append = [&](std::string_view item) {
    if (!items.empty()) items += ',';
    items += item;
  };
  if (!input.starts_with('[')) {
    append(fmt::format(R"({{"role":"user","content":{}}})", input));
    return;
  }
  JsonElements elements(input);
  while (const auto element = elements.Next()) append(*element);
}

void CountOne(std::atomic<uint64_t>& n) { n.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

MockEngine::Fate MockEngine::Draw() {
  if (options_.fail_rate > 0 && dice_.Unit() < options_.fail_rate) return Fate::kFail;
  if (options_.hang_rate > 0 && dice_.Unit() < options_.hang_rate) return Fate::kHang;
  return Fate::kFine;
}

void MockEngine::Count(Outcome outcome) {
  switch (outcome) {
    case Outcome::kCompleted:
      CountOne(counts_.completed);
      break;
    case Outcome::kFailed:
      CountOne(counts_.failed);
      break;
    case Outcome::kCancelled:
      CountOne(counts_.cancelled);
      break;
  }
  counts_.in_flight.fetch_sub(1, std::memory_order_relaxed);
}

Task<void> MockEngine::ServePost(ServerConnection& connection, std::string_view path) {
  CountOne(counts_.requests);
  CountOne(counts_.in_flight);
  Presence presence(connection.socket());
  present_.insert(&presence);
  auto answering = ReadAndAnswer(connection, presence, path);
  const Outcome outcome = co_await answering;
  present_.erase(&presence);
  if (outcome == Outcome::kCancelled) connection.CloseAfterwards();
  Count(outcome);
}

Task<Outcome> MockEngine::ReadAndAnswer(ServerConnection& connection, Presence& presence,
                                        std::string_view path) {
  Visit visit{.connection = connection, .presence = presence, .path = path};
  visit.route = RouteOf(options_.engine, path);
  visit.started = loop_.now();
  auto reading = connection.ReadBody();
  const auto body = co_await reading;
  if (!body && body.error().status == 0) co_return Outcome::kCancelled;
  Answer answer;
  if (!body) {
    answer = Refuse(body.error());
  } else if (!Authorized(connection.head())) {
    answer = JsonAnswer(401, R"({"error":"Unauthorized"})");
  } else if (visit.body = *body; auto refused = ReadForm(visit)) {
    answer = *std::move(refused);
  } else if (options_.busy) {
    answer = RefusalAnswer(
        options_.engine, visit.route,
        {.status = 503, .type = "ServiceUnavailableError", .message = std::string(kBusy)});
  } else {
    auto answering = AnswerModelCall(visit);
    const Outcome outcome = co_await answering;
    co_return outcome;
  }
  auto finishing = Finish(visit, std::move(answer));
  const Outcome outcome = co_await finishing;
  co_return outcome;
}

Task<Outcome> MockEngine::AnswerModelCall(Visit& visit) {
  const Fate fate = Draw();
  if (fate == Fate::kHang) {
    auto hanging = FallSilent(visit);
    const Outcome outcome = co_await hanging;
    co_return outcome;
  }
  Answer answer;
  if (fate == Fate::kFail) {
    answer =
        RefusalAnswer(options_.engine, visit.route,
                      {.status = 500, .type = "InternalServerError", .message = "mock failure"});
  } else if (visit.route == MockRoute::kOther) {
    answer = IsEchoed(visit.path) ? JsonAnswer(200, EchoPage(visit.path, visit.body))
                                  : NoSuchPage({.method = "POST", .path = visit.path});
  } else if (auto refused = CheckRequest(visit)) {
    answer = *std::move(refused);
  } else if (visit.route == MockRoute::kEmbeddings) {
    answer = JsonAnswer(200, EmbeddingsPage(visit.identity, visit.request));
  } else if (const auto read = ReadPrompts(visit); !read) {
    answer = Refused(visit, read.error());
  } else if (visit.route == MockRoute::kCountTokens) {
    answer = JsonAnswer(200, fmt::format(R"({{"input_tokens":{}}})", visit.request.prompt_tokens));
  } else {
    auto generating = Generate(visit);
    const Outcome outcome = co_await generating;
    co_return outcome;
  }
  auto finishing = Finish(visit, std::move(answer));
  const Outcome outcome = co_await finishing;
  co_return outcome;
}

Task<Outcome> MockEngine::Generate(Visit& visit) {
  auto answering = Simulates(visit) ? simulated_->Serve(visit) : paced_.Serve(visit);
  const Outcome outcome = co_await answering;
  co_return outcome;
}

// What has no tokens, or none of an engine's, needs no engine.
bool MockEngine::Simulates(const Visit& visit) const {
  return simulated_ && !visit.aborted && !visit.request.answer_bytes &&
         (HasPlainPrompt(visit.route) || ApiOf(visit.route));
}

std::optional<Answer> MockEngine::ReadForm(Visit& visit) const {
  if (visit.route == MockRoute::kOther) return std::nullopt;
  const Header* const type = visit.connection.head().headers.Find(HeaderName::kContentType);
  if (type == nullptr || !IsJsonType(type->value)) {
    return MediaTypeAnswer(options_.engine, visit.route);
  }
  auto members = ReadMembers(options_.engine, visit.route, visit.body);
  if (!members) return std::move(members).error();
  visit.members = *std::move(members);
  if (const auto refused = CheckSettings(options_.engine, visit.route, visit.members)) {
    return RefusalAnswer(options_.engine, visit.route, *refused);
  }
  return CheckForm(options_.engine, visit.route, visit.members, visit.body);
}

Answer MockEngine::Refused(const Visit& visit, const Error& error) const {
  return RefusalAnswer(options_.engine, visit.route, {.message = error.what});
}

std::optional<Answer> MockEngine::CheckRequest(Visit& visit) {
  const std::string model = JsonText(MemberNamed(visit.members, "model")).value_or("");
  if (!model.empty() && !Serves(visit.route, model)) {
    return RefusalAnswer(options_.engine, visit.route, UnknownModel(options_, model));
  }
  if (const auto refused =
          CheckLimits(options_.engine, visit.route, visit.members, MaxModelLength(options_))) {
    return RefusalAnswer(options_.engine, visit.route, *refused);
  }
  if (const auto prepared = Prepare(visit); !prepared) return Refused(visit, prepared.error());
  if (visit.route == MockRoute::kResponses && !Recall(visit)) {
    return ResponseNotFound(options_.engine,
                            JsonText(visit.request.chat.previous_response_id).value_or(""));
  }
  return std::nullopt;
}

bool MockEngine::Recall(Visit& visit) const {
  ChatFields& chat = visit.request.chat;
  std::string& items = visit.conversation;
  if (!chat.previous_response_id.empty()) {
    const auto found = options_.responses->Find(JsonText(chat.previous_response_id).value_or(""));
    if (!found) return false;
    items = found->items;
  }
  AppendItems(chat.input, items);
  items.insert(0, "[").append("]");
  // A text that nothing comes before is read as one.
  if (!chat.previous_response_id.empty()) chat.input = items;
  chat.previous_response_id = {};
  return true;
}

// Only TensorRT-LLM can delete one, and it alone cannot cancel one.
std::optional<Answer> MockEngine::StoredResponse(const PageRequest& request) const {
  constexpr std::string_view kFolder = "/v1/responses/";
  constexpr std::string_view kCancel = "/cancel";
  if (!request.path.starts_with(kFolder)) return std::nullopt;
  const bool trtllm = options_.engine == MockedEngine::kTrtllm;
  std::string_view id = request.path.substr(kFolder.size());
  const bool cancels = !trtllm && id.ends_with(kCancel);
  if (cancels) id.remove_suffix(kCancel.size());
  if (id.contains('/')) return std::nullopt;
  const std::string_view allowed = cancels ? "POST" : trtllm ? "GET, DELETE" : "GET";
  if (!allowed.contains(request.method)) return MethodNotAllowedAnswer(allowed);
  const auto found = options_.responses->Find(id);
  if (!found) return ResponseNotFound(options_.engine, id);
  if (request.method == "DELETE") {
    options_.responses->Remove(id);
    return JsonAnswer(200, fmt::format(R"({{"id":"{}","object":"response","deleted":true}})", id));
  }
  if (cancels && options_.engine == MockedEngine::kVllm) {
    return RefusalAnswer(options_.engine, MockRoute::kResponses,
                         {.type = "invalid_request_error",
                          .message = "Cannot cancel a synchronous response.",
                          .param = "response_id"});
  }
  return JsonAnswer(200, found->page);
}

// Fills in what follows from the body.
Result<void> MockEngine::Prepare(Visit& visit) {
  TRY(visit.request, ParseCompletionRequest(visit.members));
  if (visit.route == MockRoute::kGenerate) {
    TRY_VOID(TakeGenerateRequest(options_.engine, visit.members, visit.request));
  }
  const RequestHead& head = visit.connection.head();
  const auto api = ApiOf(visit.route);
  visit.identity.chat = api.has_value();
  visit.request.chat.api = api.value_or(PromptApi::kChat);
  visit.identity.id = MakeId(IdPrefix(options_.engine, visit.route), head);
  visit.identity.created = SecondsNow();
  visit.identity.model = visit.request.model.empty() && !options_.models.empty()
                             ? options_.models.front()
                             : visit.request.model;
  visit.tokens = visit.request.max_tokens.value_or(options_.tokens);
  visit.finish_reason = visit.request.max_tokens ? "length" : "stop";
  if (options_.abort_after_tokens > 0 && options_.abort_after_tokens < visit.tokens) {
    visit.tokens = options_.abort_after_tokens;
    visit.finish_reason = "abort";
  }
  visit.aborted = options_.drain_abort;
  if (visit.aborted) {
    visit.tokens = 0;
    visit.finish_reason = "abort";
  }
  return {};
}

Result<void> MockEngine::ReadPrompts(Visit& visit) {
  const bool chat = visit.identity.chat;
  if (!chat && !HasPlainPrompt(visit.route)) return {};
  const PromptForm form = FormOf(visit.request, chat, options_.engine);
  switch (form) {
    case PromptForm::kIds:
      CountOne(counts_.ids_prompts);
      break;
    case PromptForm::kText:
      CountOne(counts_.text_prompts);
      break;
    case PromptForm::kChat:
      CountOne(counts_.chat_prompts);
      break;
  }
  if (!Simulates(visit) && options_.language_model == nullptr) return {};
  TRY(visit.prompts, PromptsOf(visit.request, chat, options_));
  // What it counts is what its /tokenize says.
  if (form != PromptForm::kIds && visit.route != MockRoute::kCountTokens) {
    for (auto& prompt : visit.prompts) {
      Distort(prompt, options_.prompt_fault, options_.language_model.get());
    }
  }
  visit.request.prompt_tokens = 0;
  for (const auto& prompt : visit.prompts) visit.request.prompt_tokens += prompt.size();
  return {};
}

// Only vLLM, and SGLang's Responses, mind the name; elsewhere it is passed over.
bool MockEngine::Serves(MockRoute route, std::string_view model) const {
  const bool minds = options_.engine == MockedEngine::kVllm ||
                     (options_.engine == MockedEngine::kSglang && route == MockRoute::kResponses);
  return !minds || std::ranges::find(options_.models, model) != options_.models.end() ||
         IsAdapter(options_, model);
}

std::string MockEngine::MakeId(std::string_view prefix, const RequestHead& head) {
  const Header* given = head.headers.Find(HeaderName::kRequestId);
  if (given != nullptr) return fmt::format("{}{}", prefix, given->value);
  return fmt::format("{}{:016x}", prefix, dice_.Next());
}

}  // namespace fathom
