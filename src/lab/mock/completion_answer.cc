#include "lab/mock/completion_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "base/text.h"
#include "codec/chunked.h"
#include "codec/json.h"

namespace fathom {
namespace {

std::string Escaped(std::string_view text) {
  std::string quoted;
  AppendJsonString(quoted, text);
  return quoted.substr(1, quoted.size() - 2);
}

// {"id":...,"object":...,"created":...,"model":...,"choices":[
std::string Opening(const AnswerIdentity& identity, std::string_view object) {
  return fmt::format(R"({{"id":"{}","object":"{}","created":{},"model":"{}","choices":[)",
                     Escaped(identity.id), object, identity.created, Escaped(identity.model));
}

std::string UsageMember(uint64_t prompt_tokens, uint64_t completion_tokens) {
  return fmt::format(R"("usage":{{"prompt_tokens":{},"total_tokens":{},"completion_tokens":{}}})",
                     prompt_tokens, prompt_tokens + completion_tokens, completion_tokens);
}

}  // namespace

Speaker::Speaker(std::string_view name, size_t padded_to)
    : name_(Escaped(name)), padded_to_(padded_to) {}

void Speaker::AppendToken(std::string& out, uint64_t i) const {
  char digits[20];
  const auto end = std::to_chars(digits, std::end(digits), i).ptr;
  const size_t length = name_.size() + static_cast<size_t>(end - digits) + 2;
  out.append(name_).append(1, ':').append(digits, end);
  if (length < padded_to_) out.append(padded_to_ - length, '.');
  out += ' ';
}

std::string Speaker::Tokens(uint64_t count) const {
  std::string out;
  for (uint64_t i = 0; i < count; ++i) AppendToken(out, i);
  return out;
}

AnswerEnvelope MakeEnvelope(const AnswerIdentity& identity, std::string_view finish_reason,
                            uint64_t prompt_tokens, uint64_t completion_tokens) {
  AnswerEnvelope out;
  out.before = Opening(identity, identity.chat ? "chat.completion" : "text_completion");
  out.before += identity.chat ? R"({"index":0,"message":{"role":"assistant","content":")"
                              : R"({"index":0,"text":")";
  out.after = fmt::format(R"("{},"logprobs":null,"finish_reason":"{}","stop_reason":null}}],{}}})",
                          identity.chat ? "}" : "", finish_reason,
                          UsageMember(prompt_tokens, completion_tokens));
  return out;
}

StreamFrames::StreamFrames(const AnswerIdentity& identity, const Speaker& speaker)
    : speaker_(speaker),
      chat_(identity.chat),
      opening_("data: " +
               Opening(identity, identity.chat ? "chat.completion.chunk" : "text_completion")),
      before_(opening_ + (chat_ ? R"({"index":0,"delta":{"content":")" : R"({"index":0,"text":")")),
      after_(Tail({})) {}

std::string StreamFrames::Tail(std::string_view finish_reason) const {
  const std::string reason =
      finish_reason.empty() ? "null" : fmt::format(R"("{}","stop_reason":null)", finish_reason);
  return fmt::format("\"{},\"logprobs\":null,\"finish_reason\":{}}}]{}}}\n\n", chat_ ? "}" : "",
                     reason, finish_reason.empty() ? "" : usage_);
}

std::string_view StreamFrames::Frame(std::string_view text, std::string_view tail) {
  const ChunkPrefix prefix(before_.size() + text.size() + tail.size());
  out_.assign(prefix.text()).append(before_).append(text).append(tail).append(kChunkSuffix);
  return out_;
}

std::string_view StreamFrames::FramePayload(std::string_view payload) {
  const ChunkPrefix prefix(payload.size());
  out_.assign(prefix.text()).append(payload).append(kChunkSuffix);
  return out_;
}

std::string_view StreamFrames::Role() {
  return FramePayload(opening_ + R"({"index":0,"delta":{"role":"assistant","content":""},)"
                                 "\"logprobs\":null,\"finish_reason\":null}]}\n\n");
}

std::string_view StreamFrames::Token(uint64_t i) {
  token_.clear();
  speaker_.AppendToken(token_, i);
  return Frame(token_, after_);
}

std::string_view StreamFrames::LastToken(uint64_t i, std::string_view finish_reason) {
  token_.clear();
  speaker_.AppendToken(token_, i);
  return Frame(token_, Tail(finish_reason));
}

std::string_view StreamFrames::Nothing(std::string_view finish_reason) {
  return Frame({}, Tail(finish_reason));
}

std::string_view StreamFrames::Usage(uint64_t prompt_tokens, uint64_t completion_tokens) {
  return FramePayload(
      fmt::format("{}],{}}}\n\n", opening_, UsageMember(prompt_tokens, completion_tokens)));
}

void StreamFrames::PutUsageWithChoices(uint64_t prompt_tokens, uint64_t completion_tokens) {
  usage_ = "," + UsageMember(prompt_tokens, completion_tokens);
}

std::string_view StreamFrames::Done() {
  FramePayload("data: [DONE]\n\n");
  out_ += kLastChunk;
  return out_;
}

std::string ErrorBody(std::string_view message, std::string_view type, std::string_view param,
                      int code) {
  JsonWriter w;
  w.BeginObject().Key("error").BeginObject();
  w.Key("message").String(message).Key("type").String(type).Key("param");
  if (param.empty()) {
    w.Null();
  } else {
    w.String(param);
  }
  w.Key("code").Int(code).EndObject().EndObject();
  return w.Take();
}

}  // namespace fathom
