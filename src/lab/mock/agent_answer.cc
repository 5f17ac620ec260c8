#include "lab/mock/agent_answer.h"

#include "codec/chunked.h"

namespace fathom {
namespace {

// None for an answer that was ended: engines leave it out, or write null.
void AddStopReason(JsonWriter& w, std::string_view finish_reason) {
  w.Key("stop_reason");
  if (finish_reason == "length") {
    w.String("max_tokens");
  } else if (finish_reason == "stop") {
    w.String("end_turn");
  } else {
    w.Null();
  }
}

std::string_view StatusOf(std::string_view finish_reason) {
  if (finish_reason == "length") return "incomplete";
  return finish_reason == "abort" ? "cancelled" : "completed";
}

}  // namespace

// The API counts what was cached apart. SGLang does not tell of zero, and vLLM not unless it was
// started so.
void AgentAnswer::AddMessageUsage(JsonWriter& w, const AgentUsageNumbers& usage,
                                  bool with_input) const {
  const bool tells = options_.cached_tokens_report;
  const bool sglang = options_.engine == MockedEngine::kSglang;
  w.Key("usage").BeginObject();
  if (with_input) {
    w.Key("input_tokens").Unsigned(usage.prompt_tokens - (tells ? usage.cached_tokens : 0));
  }
  w.Key("output_tokens").Unsigned(usage.output_tokens);
  if (with_input && tells && (!sglang || usage.cached_tokens > 0)) {
    w.Key("cache_read_input_tokens").Unsigned(usage.cached_tokens);
  }
  w.EndObject();
}

void AgentAnswer::AddResponseItem(JsonWriter& w, std::string_view text,
                                  std::string_view status) const {
  w.BeginObject().Key("id").String("msg_" + identity_.id).Key("type").String("message");
  w.Key("role").String("assistant").Key("status").String(status).Key("content").BeginArray();
  if (status != "in_progress") {
    w.BeginObject().Key("type").String("output_text").Key("text").String(text);
    w.Key("annotations").BeginArray().EndArray().EndObject();
  }
  w.EndArray().EndObject();
}

void AgentAnswer::AddResponse(JsonWriter& w, std::string_view text, std::string_view status,
                              std::string_view finish_reason,
                              const AgentUsageNumbers* usage) const {
  w.BeginObject().Key("id").String(identity_.id).Key("object").String("response");
  w.Key("created_at").Int(identity_.created).Key("status").String(status);
  w.Key("background").Bool(false).Key("error").Null().Key("incomplete_details");
  if (finish_reason == "length") {
    w.BeginObject().Key("reason").String("max_output_tokens").EndObject();
  } else {
    w.Null();
  }
  w.Key("instructions").Null().Key("metadata").BeginObject().EndObject();
  w.Key("model").String(identity_.model).Key("output").BeginArray();
  if (usage != nullptr) AddResponseItem(w, text, "completed");
  w.EndArray().Key("parallel_tool_calls").Bool(true).Key("temperature").Number(1.0);
  w.Key("tool_choice").String("auto").Key("tools").BeginArray().EndArray();
  w.Key("top_p").Number(1.0).Key("usage");
  if (usage == nullptr) {
    w.Null().EndObject();
    return;
  }
  w.BeginObject().Key("input_tokens").Unsigned(usage->prompt_tokens);
  if (options_.cached_tokens_report) {
    w.Key("input_tokens_details").BeginObject().Key("cached_tokens");
    w.Unsigned(usage->cached_tokens).EndObject();
  }
  w.Key("output_tokens").Unsigned(usage->output_tokens).Key("output_tokens_details");
  w.BeginObject().Key("reasoning_tokens").Unsigned(0).EndObject().Key("total_tokens");
  w.Unsigned(usage->prompt_tokens + usage->output_tokens).EndObject().EndObject();
}

std::string AgentAnswer::Whole(std::string_view text, std::string_view finish_reason,
                               const AgentUsageNumbers& usage) const {
  JsonWriter w;
  if (!messages()) {
    AddResponse(w, text, StatusOf(finish_reason), finish_reason, &usage);
    return w.Take();
  }
  w.BeginObject().Key("id").String(identity_.id).Key("type").String("message");
  w.Key("role").String("assistant").Key("content").BeginArray().BeginObject();
  w.Key("type").String("text").Key("text").String(text).EndObject().EndArray();
  w.Key("model").String(identity_.model);
  AddStopReason(w, finish_reason);
  AddMessageUsage(w, usage, true);
  w.EndObject();
  return w.Take();
}

std::string AgentAnswer::Event(std::string_view name, const JsonWriter& data) const {
  std::string event = "event: ";
  event.append(name).append("\ndata: ").append(data.text()).append("\n\n");
  const ChunkPrefix prefix(event.size());
  return std::string(prefix.text()).append(event).append(kChunkSuffix);
}

JsonWriter AgentAnswer::ResponseEvent(std::string_view name) {
  JsonWriter w;
  w.BeginObject().Key("type").String(name).Key("sequence_number").Unsigned(number_++);
  return w;
}

std::string AgentAnswer::Begin(uint64_t prompt_tokens) {
  if (messages()) {
    JsonWriter start;
    start.BeginObject().Key("type").String("message_start").Key("message").BeginObject();
    start.Key("id").String(identity_.id).Key("type").String("message");
    start.Key("role").String("assistant").Key("content").BeginArray().EndArray();
    start.Key("model").String(identity_.model).Key("stop_reason").Null().Key("usage");
    start.BeginObject().Key("input_tokens").Unsigned(prompt_tokens).Key("output_tokens").Int(0);
    start.EndObject().EndObject().EndObject();
    JsonWriter block;
    block.BeginObject().Key("type").String("content_block_start").Key("index").Int(0);
    block.Key("content_block").BeginObject().Key("type").String("text").Key("text").String("");
    block.EndObject().EndObject();
    return Event("message_start", start) + Event("content_block_start", block);
  }
  std::string out;
  for (const std::string_view name : {"response.created", "response.in_progress"}) {
    JsonWriter w = ResponseEvent(name);
    w.Key("response");
    AddResponse(w, "", "in_progress", "", nullptr);
    w.EndObject();
    out += Event(name, w);
  }
  JsonWriter item = ResponseEvent("response.output_item.added");
  item.Key("output_index").Int(0).Key("item");
  AddResponseItem(item, "", "in_progress");
  item.EndObject();
  JsonWriter part = ResponseEvent("response.content_part.added");
  part.Key("output_index").Int(0).Key("content_index").Int(0);
  part.Key("item_id").String("msg_" + identity_.id).Key("part").BeginObject();
  part.Key("type").String("output_text").Key("text").String("").Key("annotations").BeginArray();
  part.EndArray().EndObject().EndObject();
  return out + Event("response.output_item.added", item) +
         Event("response.content_part.added", part);
}

std::string AgentAnswer::Piece(std::string_view text) {
  if (messages()) {
    JsonWriter w;
    w.BeginObject().Key("type").String("content_block_delta").Key("index").Int(0);
    w.Key("delta").BeginObject().Key("type").String("text_delta").Key("text").String(text);
    w.EndObject().EndObject();
    return Event("content_block_delta", w);
  }
  JsonWriter w = ResponseEvent("response.output_text.delta");
  w.Key("output_index").Int(0).Key("content_index").Int(0);
  w.Key("item_id").String("msg_" + identity_.id).Key("delta").String(text);
  w.Key("logprobs").BeginArray().EndArray().EndObject();
  return Event("response.output_text.delta", w);
}

std::string AgentAnswer::End(std::string_view text, std::string_view finish_reason,
                             const AgentUsageNumbers& usage) {
  if (messages()) {
    JsonWriter stop;
    stop.BeginObject().Key("type").String("content_block_stop").Key("index").Int(0).EndObject();
    JsonWriter delta;
    delta.BeginObject().Key("type").String("message_delta").Key("delta").BeginObject();
    AddStopReason(delta, finish_reason);
    delta.EndObject();
    AddMessageUsage(delta, usage, true);
    delta.EndObject();
    JsonWriter last;
    last.BeginObject().Key("type").String("message_stop").EndObject();
    return Event("content_block_stop", stop) + Event("message_delta", delta) +
           Event("message_stop", last) + std::string(kLastChunk);
  }
  JsonWriter done = ResponseEvent("response.output_text.done");
  done.Key("output_index").Int(0).Key("content_index").Int(0);
  done.Key("item_id").String("msg_" + identity_.id).Key("text").String(text);
  done.Key("logprobs").BeginArray().EndArray().EndObject();
  JsonWriter part = ResponseEvent("response.content_part.done");
  part.Key("output_index").Int(0).Key("content_index").Int(0);
  part.Key("item_id").String("msg_" + identity_.id).Key("part").BeginObject();
  part.Key("type").String("output_text").Key("text").String(text).Key("annotations").BeginArray();
  part.EndArray().EndObject().EndObject();
  JsonWriter item = ResponseEvent("response.output_item.done");
  item.Key("output_index").Int(0).Key("item");
  AddResponseItem(item, text, "completed");
  item.EndObject();
  const std::string last = "response." + std::string(StatusOf(finish_reason));
  JsonWriter response = ResponseEvent(last);
  response.Key("response");
  AddResponse(response, text, StatusOf(finish_reason), finish_reason, &usage);
  response.EndObject();
  return Event("response.output_text.done", done) + Event("response.content_part.done", part) +
         Event("response.output_item.done", item) + Event(last, response) + std::string(kLastChunk);
}

}  // namespace fathom
