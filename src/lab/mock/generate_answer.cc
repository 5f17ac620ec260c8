#include "lab/mock/generate_answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "codec/chunked.h"
#include "codec/json_scan.h"

namespace fathom {
namespace {

std::string FramedEvent(const JsonWriter& w) {
  std::string event = "data: ";
  event.append(w.text()).append("\n\n");
  const ChunkPrefix prefix(event.size());
  return std::string(prefix.text()).append(event).append(kChunkSuffix);
}

void AddTokenIds(JsonWriter& w, std::string_view key, std::span<const TokenId> ids) {
  w.Key(key).BeginArray();
  for (const TokenId id : ids) w.Unsigned(id);
  w.EndArray();
}

std::string_view PromptIn(MockedEngine engine, const BodyMembers& members) {
  if (engine == MockedEngine::kVllm) return ValueNamed(members, "token_ids");
  const std::string_view text = ValueNamed(members, "text");
  return text.empty() ? ValueNamed(members, "input_ids") : text;
}

}  // namespace

Result<void> TakeGenerateRequest(MockedEngine engine, const BodyMembers& members,
                                 CompletionRequest& out) {
  out.input_ids = {};
  out.prompt = PromptIn(engine, members);
  if (out.prompt.empty()) {
    return Fail(Blame::kCaller, "Either text, input_ids or input_embeds should be provided.");
  }
  out.prompt_tokens = CountTokens(out.prompt);
  std::string_view sampling = ValueNamed(members, "sampling_params");
  if (sampling.starts_with('[')) sampling = JsonElements(sampling).Next().value_or("");
  if (!sampling.starts_with('{')) return {};
  BodyMembers inner;
  JsonScanner scanner(sampling);
  for (auto member = scanner.Next(); member && *member; member = scanner.Next()) {
    inner.push_back(**member);
    // SGLang's name for it.
    if (JsonKeyIs(inner.back().key, "max_new_tokens")) inner.back().key = "max_tokens";
  }
  TRY(const CompletionRequest inside, ParseCompletionRequest(inner));
  out.max_tokens = inside.max_tokens;
  out.choices = inside.choices;
  out.stop = inside.stop;
  out.prompt_logprobs = inside.prompt_logprobs;
  return {};
}

Answer GeneratePage(MockedEngine engine, const AnswerIdentity& identity,
                    const CompletionRequest& request, std::string_view text, uint64_t tokens,
                    std::string_view finish_reason) {
  const std::string body =
      engine == MockedEngine::kSglang
          ? fmt::format(R"({{"text":"{}","output_ids":[],"meta_info":{{"id":"{}",)"
                        R"("finish_reason":{{"type":"{}"}},"prompt_tokens":{},)"
                        R"("completion_tokens":{},"cached_tokens":0}}}})",
                        text, identity.id, finish_reason, request.prompt_tokens, tokens)
          : fmt::format(R"({{"request_id":"{}","output_mode":"tokens","choices":[{{"index":0,)"
                        R"("finish_reason":"{}","token_ids":[{}]}}],)"
                        R"("usage":{{"prompt_tokens":{},"completion_tokens":{}}}}})",
                        identity.id, finish_reason,
                        fmt::join(std::views::iota(uint64_t{0}, tokens), ","),
                        request.prompt_tokens, tokens);
  if (!request.stream) return {.body = body};
  return {.content_type = "text/event-stream; charset=utf-8",
          .body = fmt::format("data: {}\n\ndata: [DONE]\n\n", body)};
}

void GenerateAnswer::AddMetaInfo(JsonWriter& w, const Choice& choice, Prompts prompts) const {
  w.Key("meta_info").BeginObject().Key("id").String(identity_.id).Key("finish_reason");
  if (choice.finish_reason.empty()) {
    w.Null();
  } else {
    w.BeginObject().Key("type").String(choice.finish_reason);
    if (choice.finish_reason == "length") w.Key("length").Unsigned(choice.tokens.size());
    if (choice.finish_reason == "abort") w.Key("message").String("Abort before prefill");
    if (choice.text.found() != nullptr) w.Key("matched").String(*choice.text.found());
    w.EndObject();
  }
  w.Key("prompt_tokens").Unsigned(prompts[choice.prompt].size());
  w.Key("weight_version").String("default").Key("total_retractions").Unsigned(0);
  w.Key("completion_tokens").Unsigned(choice.tokens.size());
  w.Key("cached_tokens").Unsigned(choice.cached_tokens).EndObject();
}

void GenerateAnswer::AddSequence(JsonWriter& w, size_t index, const Choice& choice, Prompts prompts,
                                 bool several) const {
  w.BeginObject().Key("text").String(choice.text.said());
  AddTokenIds(w, "output_ids", choice.tokens);
  AddMetaInfo(w, choice, prompts);
  if (several) w.Key("index").Unsigned(index);
  w.EndObject();
}

void GenerateAnswer::AddTokens(JsonWriter& w, size_t index, const Choice& choice,
                               size_t from) const {
  w.BeginObject().Key("index").Unsigned(index).Key("finish_reason");
  choice.finish_reason.empty() ? w.Null() : w.String(choice.finish_reason);
  w.Key("stop_reason");
  choice.text.found() == nullptr ? w.Null() : w.String(*choice.text.found());
  AddTokenIds(w, "token_ids", std::span(choice.tokens).subspan(from));
  w.Key("routed_experts").Null().Key("sampling_mask").Null().Key("weight_versions").Null();
  w.Key("logprobs").Null().EndObject();
}

void GenerateAnswer::AddUsage(JsonWriter& w, std::span<const Choice> choices,
                              Prompts prompts) const {
  uint64_t made = 0;
  uint64_t found = 0;
  for (const Choice& choice : choices) {
    made += choice.tokens.size();
    found = std::max<uint64_t>(found, choice.cached_tokens);
  }
  const uint64_t asked = prompts.front().size();
  w.Key("usage").BeginObject().Key("prompt_tokens").Unsigned(asked);
  w.Key("total_tokens").Unsigned(asked + made).Key("completion_tokens").Unsigned(made);
  w.Key("prompt_tokens_details");
  if (options_.cached_tokens_report) {
    w.BeginObject().Key("cached_tokens").Unsigned(found).EndObject();
  } else {
    w.Null();
  }
  w.EndObject();
}

std::string GenerateAnswer::Whole(std::span<const Choice> choices, Prompts prompts) const {
  JsonWriter w;
  if (sglang()) {
    const bool several = choices.size() > 1;
    if (several) w.BeginArray();
    for (size_t i = 0; i < choices.size(); ++i) AddSequence(w, i, choices[i], prompts, false);
    if (several) w.EndArray();
    return w.Take();
  }
  w.BeginObject().Key("request_id").String(identity_.id).Key("model").String(identity_.model);
  w.Key("created").Int(identity_.created);
  AddUsage(w, choices, prompts);
  w.Key("prompt_logprobs").Null().Key("kv_transfer_params").Null();
  w.Key("output_mode").String("tokens").Key("choices").BeginArray();
  for (size_t i = 0; i < choices.size(); ++i) AddTokens(w, i, choices[i], 0);
  w.EndArray().EndObject();
  return w.Take();
}

std::string GenerateAnswer::Piece(size_t index, std::span<Choice> choices, Prompts prompts) const {
  JsonWriter w;
  Choice& choice = choices[index];
  if (sglang()) {
    AddSequence(w, index, choice, prompts, choices.size() > 1);
    return FramedEvent(w);
  }
  w.BeginObject().Key("request_id").String(identity_.id).Key("usage").Null();
  w.Key("output_mode").String("tokens").Key("choices").BeginArray();
  AddTokens(w, index, choice, choice.told);
  choice.told = choice.tokens.size();
  w.EndArray().EndObject();
  return FramedEvent(w);
}

std::string GenerateAnswer::Usage(std::span<const Choice> choices, Prompts prompts) const {
  JsonWriter w;
  w.BeginObject().Key("request_id").String(identity_.id);
  AddUsage(w, choices, prompts);
  w.Key("output_mode").String("tokens").Key("choices").BeginArray().EndArray().EndObject();
  return FramedEvent(w);
}

}  // namespace fathom
