#include "lab/mock/pages.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <vector>

#include "base/random.h"
#include "codec/json.h"
#include "codec/json_scan.h"

namespace fathom {
namespace {

constexpr int kEmbeddingSize = 8;

std::string_view Owner(MockedEngine engine) {
  switch (engine) {
    case MockedEngine::kVllm:
      return "vllm";
    case MockedEngine::kSglang:
      return "sglang";
    case MockedEngine::kTrtllm:
      return "tensorrt_llm";
  }
  return "";
}

// A text or a list of ids is one input; a list of texts or of lists is one per element.
std::vector<std::string_view> Inputs(std::string_view raw) {
  std::vector<std::string_view> inputs;
  if (raw.starts_with('[')) {
    JsonElements elements(raw);
    while (const auto element = elements.Next()) {
      if (!element->starts_with('"') && !element->starts_with('[')) return {raw};
      inputs.push_back(*element);
    }
  } else if (!raw.empty()) {
    inputs.push_back(raw);
  }
  return inputs;
}

void AppendEmbedding(JsonWriter& w, int64_t index, std::string_view input) {
  Random numbers(XXH3_64bits(input.data(), input.size()));
  w.BeginObject().Key("index").Int(index).Key("object").String("embedding");
  w.Key("embedding").BeginArray();
  for (int i = 0; i < kEmbeddingSize; ++i) w.Number(numbers.Unit() * 2 - 1);
  w.EndArray().EndObject();
}

// vLLM has no name for an abort in this API.
std::string_view StopReason(std::string_view finish_reason) {
  return finish_reason == "abort" ? "null" : R"("max_tokens")";
}

}  // namespace

std::string ModelsPage(const MockOptions& options, int64_t created) {
  JsonWriter w;
  w.BeginObject().Key("object").String("list").Key("data").BeginArray();
  const auto add = [&](const std::string& model, const std::string* parent) {
    w.BeginObject().Key("id").String(model).Key("object").String("model");
    w.Key("created").Int(created).Key("owned_by").String(Owner(options.engine));
    w.Key("root").String(model).Key("parent");
    parent == nullptr ? w.Null() : w.String(*parent);
    if (options.engine != MockedEngine::kTrtllm) {
      w.Key("max_model_len").Unsigned(MaxModelLength(options));
    }
    w.EndObject();
  };
  for (const std::string& model : options.models) add(model, nullptr);
  for (const std::string& lora : options.loras) add(lora, &options.models.front());
  w.EndArray().EndObject();
  return w.Take();
}

std::string VersionPage(MockedEngine engine) {
  switch (engine) {
    case MockedEngine::kVllm:
      return R"({"version":"0.32.0"})";
    case MockedEngine::kSglang:
      return R"({"version":"0.5.23"})";
    case MockedEngine::kTrtllm:
      return R"({"version":"1.2.0"})";
  }
  return "{}";
}

std::string StatsPage(const MockCounts& counts, const EngineRanks* ranks,
                      const PrefixLedger* ledger) {
  const auto load = [](const std::atomic<uint64_t>& n) {
    return n.load(std::memory_order_relaxed);
  };
  JsonWriter w;
  w.BeginObject().Key("requests").Unsigned(load(counts.requests));
  w.Key("in_flight").Unsigned(load(counts.in_flight));
  w.Key("cancelled").Unsigned(load(counts.cancelled));
  w.Key("completed").Unsigned(load(counts.completed));
  w.Key("failed").Unsigned(load(counts.failed));
  w.Key("ids_prompts").Unsigned(load(counts.ids_prompts));
  w.Key("text_prompts").Unsigned(load(counts.text_prompts));
  w.Key("chat_prompts").Unsigned(load(counts.chat_prompts));
  w.Key("tokenize_calls").Unsigned(load(counts.tokenize_calls));
  w.Key("response_calls").Unsigned(load(counts.response_calls));
  const EngineCounters engine = ranks != nullptr ? ranks->Statistics().counters : EngineCounters();
  w.Key("prompt_tokens").Unsigned(engine.prompt_tokens);
  w.Key("cached_prompt_tokens").Unsigned(engine.cached_tokens);
  w.Key("recomputed_prompt_tokens").Unsigned(engine.recomputed_tokens);
  w.Key("preemptions").Unsigned(engine.preemptions);
  w.Key("ledger_full").Bool(ledger != nullptr && ledger->full()).EndObject();
  return w.Take();
}

std::string EmbeddingsPage(const AnswerIdentity& identity, const CompletionRequest& request) {
  JsonWriter w;
  w.BeginObject().Key("id").String(identity.id).Key("object").String("list");
  w.Key("created").Int(identity.created).Key("model").String(identity.model);
  w.Key("data").BeginArray();
  int64_t index = 0;
  for (const std::string_view input : Inputs(request.chat.input))
    AppendEmbedding(w, index++, input);
  w.EndArray().Key("usage").BeginObject().Key("prompt_tokens").Unsigned(request.prompt_tokens);
  w.Key("total_tokens").Unsigned(request.prompt_tokens).EndObject().EndObject();
  return w.Take();
}

std::string ResponsePage(const AnswerIdentity& identity, const CompletionRequest& request,
                         std::string_view escaped_text, uint64_t tokens,
                         std::string_view finish_reason) {
  const std::string_view status = finish_reason == "abort" ? "cancelled" : "completed";
  JsonWriter w;
  w.BeginObject().Key("id").String(identity.id).Key("object").String("response");
  w.Key("created_at").Int(identity.created).Key("status").String(status);
  w.Key("model").String(identity.model).Key("output").BeginArray().BeginObject();
  w.Key("type").String("message").Key("id").String("msg_" + identity.id);
  w.Key("role").String("assistant").Key("status").String("completed");
  w.Key("content").BeginArray().BeginObject().Key("type").String("output_text");
  w.Key("text").Raw(fmt::format("\"{}\"", escaped_text)).Key("annotations").BeginArray();
  w.EndArray().EndObject().EndArray().EndObject().EndArray().Key("usage").BeginObject();
  w.Key("input_tokens").Unsigned(request.prompt_tokens).Key("output_tokens").Unsigned(tokens);
  w.Key("total_tokens").Unsigned(request.prompt_tokens + tokens).EndObject().EndObject();
  return w.Take();
}

std::string MessagePage(const AnswerIdentity& identity, const CompletionRequest& request,
                        std::string_view escaped_text, uint64_t tokens,
                        std::string_view finish_reason) {
  JsonWriter w;
  w.BeginObject().Key("id").String(identity.id).Key("type").String("message");
  w.Key("role").String("assistant").Key("content").BeginArray().BeginObject();
  w.Key("type").String("text").Key("text").Raw(fmt::format("\"{}\"", escaped_text));
  w.EndObject().EndArray().Key("model").String(identity.model);
  w.Key("stop_reason").Raw(StopReason(finish_reason)).Key("usage").BeginObject();
  w.Key("input_tokens").Unsigned(request.prompt_tokens).Key("output_tokens").Unsigned(tokens);
  w.EndObject().EndObject();
  return w.Take();
}

std::string MessageEvents(const AnswerIdentity& identity, const CompletionRequest& request,
                          std::string_view escaped_text, uint64_t tokens,
                          std::string_view finish_reason) {
  JsonWriter start;
  start.BeginObject().Key("type").String("message_start").Key("message").BeginObject();
  start.Key("id").String(identity.id).Key("type").String("message").Key("role").String("assistant");
  start.Key("content").BeginArray().EndArray().Key("model").String(identity.model);
  start.Key("usage").BeginObject().Key("input_tokens").Unsigned(request.prompt_tokens);
  start.Key("output_tokens").Int(0).EndObject().EndObject().EndObject();
  std::string out;
  const auto add = [&](std::string_view name, std::string_view data) {
    out.append("event: ").append(name).append("\ndata: ").append(data).append("\n\n");
  };
  add("message_start", start.text());
  add("content_block_start",
      R"({"type":"content_block_start","content_block":{"type":"text","text":""},"index":0})");
  add("content_block_delta",
      fmt::format(R"({{"type":"content_block_delta","delta":{{"type":"text_delta","text":"{}"}},)"
                  R"("index":0}})",
                  escaped_text));
  add("content_block_stop", R"({"type":"content_block_stop","index":0})");
  add("message_delta", fmt::format(R"({{"type":"message_delta","delta":{{"stop_reason":{}}},)"
                                   R"("usage":{{"input_tokens":{},"output_tokens":{}}}}})",
                                   StopReason(finish_reason), request.prompt_tokens, tokens));
  add("message_stop", R"({"type":"message_stop"})");
  return out;
}

std::string EchoPage(std::string_view path, std::string_view body) {
  JsonWriter w;
  w.BeginObject().Key("object").String("echo").Key("path").String(path);
  w.Key("bytes").Unsigned(body.size()).Key("xxh3");
  w.String(fmt::format("{:016x}", XXH3_64bits(body.data(), body.size()))).EndObject();
  return w.Take();
}

}  // namespace fathom
