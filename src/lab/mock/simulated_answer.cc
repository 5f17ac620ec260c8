#include "lab/mock/simulated_answer.h"

#include <algorithm>

#include "codec/chunked.h"

namespace fathom {
namespace {

std::string Framed(std::string_view json) {
  const size_t size = json.size() + 8;
  const ChunkPrefix prefix(size);
  std::string out;
  out.append(prefix.text()).append("data: ").append(json).append("\n\n").append(kChunkSuffix);
  return out;
}

void Begin(JsonWriter& w, const AnswerIdentity& identity, std::string_view object) {
  w.BeginObject().Key("id").String(identity.id).Key("object").String(object);
  w.Key("created").Int(identity.created).Key("model").String(identity.model);
  w.Key("choices").BeginArray();
}

void AddIds(JsonWriter& w, std::string_view key, std::span<const TokenId> ids) {
  w.Key(key).BeginArray();
  for (const TokenId id : ids) w.Unsigned(id);
  w.EndArray();
}

// The reason, and the string that was found, under the name that the engine has for it.
void AddFinish(JsonWriter& w, const Choice& choice, MockedEngine engine) {
  w.Key("logprobs").Null().Key("finish_reason");
  if (choice.finish_reason.empty()) {
    w.Null();
    return;
  }
  w.String(choice.finish_reason);
  w.Key(engine == MockedEngine::kSglang ? "matched_stop" : "stop_reason");
  if (choice.text.found() != nullptr) {
    w.String(*choice.text.found());
  } else {
    w.Null();
  }
}

}  // namespace

// Where details are not told, whole answers have a null for them.
void SimulatedAnswer::AddUsage(JsonWriter& w, std::span<const Choice> choices, Prompts prompts,
                               bool streamed) const {
  uint64_t asked = 0;
  uint64_t made = 0;
  std::vector<uint64_t> cached(prompts.size());
  for (const auto& prompt : prompts) asked += prompt.size();
  for (const Choice& choice : choices) {
    made += choice.tokens.size();
    // The copies of a prompt find what the first of them has stored; the engine tells of a copy.
    cached[choice.prompt] = std::max<uint64_t>(cached[choice.prompt], choice.cached_tokens);
  }
  uint64_t found = 0;
  for (const uint64_t one : cached) found += one;
  w.Key("usage").BeginObject().Key("prompt_tokens").Unsigned(asked);
  w.Key("total_tokens").Unsigned(asked + made).Key("completion_tokens").Unsigned(made);
  if (manner_.cached_tokens) {
    w.Key("prompt_tokens_details").BeginObject().Key("cached_tokens").Unsigned(found).EndObject();
  } else if (!streamed) {
    w.Key("prompt_tokens_details").Null();
  }
  w.EndObject();
}

std::string SimulatedAnswer::Whole(std::span<const Choice> choices, Prompts prompts) const {
  JsonWriter w;
  Begin(w, identity_, identity_.chat ? "chat.completion" : "text_completion");
  for (size_t i = 0; i < choices.size(); ++i) {
    const Choice& choice = choices[i];
    w.BeginObject().Key("index").Unsigned(i);
    if (identity_.chat) {
      w.Key("message").BeginObject().Key("role").String("assistant");
      w.Key("content").String(choice.text.said()).EndObject();
    } else {
      w.Key("text").String(choice.text.said());
    }
    AddFinish(w, choice, manner_.engine);
    if (manner_.token_ids) AddIds(w, "token_ids", choice.tokens);
    if (manner_.token_ids && !identity_.chat) AddIds(w, "prompt_token_ids", prompts[choice.prompt]);
    w.EndObject();
  }
  w.EndArray();
  AddUsage(w, choices, prompts, false);
  if (manner_.token_ids && identity_.chat) AddIds(w, "prompt_token_ids", prompts.front());
  w.EndObject();
  return w.Take();
}

std::string SimulatedAnswer::Role(size_t index, const std::vector<TokenId>& prompt) const {
  JsonWriter w;
  Begin(w, identity_, "chat.completion.chunk");
  w.BeginObject().Key("index").Unsigned(index).Key("delta").BeginObject();
  w.Key("role").String("assistant").Key("content").String("").EndObject();
  w.Key("logprobs").Null().Key("finish_reason").Null().EndObject().EndArray();
  if (manner_.token_ids) AddIds(w, "prompt_token_ids", prompt);
  w.EndObject();
  return Framed(w.text());
}

// All but the end of the event.
void SimulatedAnswer::AddPiece(JsonWriter& w, size_t index, Choice& choice, std::string_view text,
                               const std::vector<TokenId>& prompt) const {
  const bool first = choice.told == 0;
  Begin(w, identity_, identity_.chat ? "chat.completion.chunk" : "text_completion");
  w.BeginObject().Key("index").Unsigned(index);
  if (identity_.chat) {
    w.Key("delta").BeginObject().Key("content").String(text).EndObject();
  } else {
    w.Key("text").String(text);
  }
  AddFinish(w, choice, manner_.engine);
  if (manner_.token_ids) AddIds(w, "token_ids", std::span(choice.tokens).subspan(choice.told));
  if (manner_.token_ids && first && !identity_.chat) AddIds(w, "prompt_token_ids", prompt);
  choice.told = choice.tokens.size();
  w.EndObject().EndArray();
}

std::string SimulatedAnswer::Piece(size_t index, Choice& choice, std::string_view text,
                                   const std::vector<TokenId>& prompt) const {
  JsonWriter w;
  AddPiece(w, index, choice, text, prompt);
  w.EndObject();
  return Framed(w.text());
}

std::string SimulatedAnswer::LastPiece(size_t index, std::span<Choice> choices,
                                       std::string_view text, Prompts prompts) const {
  JsonWriter w;
  AddPiece(w, index, choices[index], text, prompts[choices[index].prompt]);
  AddUsage(w, choices, prompts, true);
  w.EndObject();
  return Framed(w.text());
}

std::string SimulatedAnswer::Usage(std::span<const Choice> choices, Prompts prompts) const {
  JsonWriter w;
  Begin(w, identity_, identity_.chat ? "chat.completion.chunk" : "text_completion");
  w.EndArray();
  AddUsage(w, choices, prompts, true);
  w.EndObject();
  return Framed(w.text());
}

}  // namespace fathom
