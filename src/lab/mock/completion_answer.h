// What does a mock engine say, byte for byte, as vLLM would?
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lab/mock/completion_request.h"

namespace fathom {

// Whose voice: token i of "mock-8100" is "mock-8100:i ", so that a test can tell who spoke and that
// nothing is missing.
class Speaker {
 public:
  Speaker(std::string_view name, size_t padded_to);
  // As it stands inside a JSON string.
  void AppendToken(std::string& out, uint64_t i) const;
  std::string Tokens(uint64_t count) const;

 private:
  std::string name_;  // escaped
  size_t padded_to_;
};

// What all parts of one answer repeat.
struct AnswerIdentity {
  bool chat = false;
  std::string id;
  int64_t created = 0;  // Unix time
  std::string model;
};

// A whole answer is before + text + after; the text is JSON-escaped and may be of any length.
struct AnswerEnvelope {
  std::string before;
  std::string after;
};
AnswerEnvelope MakeEnvelope(const AnswerIdentity& identity, std::string_view finish_reason,
                            uint64_t prompt_tokens, uint64_t completion_tokens);

// The events of a streamed answer, each framed as one chunk of the body. The constant parts are
// made once; a token costs a few copies. A view is good until the next call.
class StreamFrames {
 public:
  StreamFrames(const AnswerIdentity& identity, const Speaker& speaker);

  std::string_view Role();  // how a chat begins
  std::string_view Token(uint64_t i);
  std::string_view LastToken(uint64_t i, std::string_view finish_reason);
  // Ends an answer without tokens.
  std::string_view Nothing(std::string_view finish_reason);
  std::string_view Usage(uint64_t prompt_tokens, uint64_t completion_tokens);
  // From now on it stands in the event with the finish_reason.
  void PutUsageWithChoices(uint64_t prompt_tokens, uint64_t completion_tokens);
  std::string_view Done();  // and the end of the body

 private:
  std::string_view Frame(std::string_view text, std::string_view tail);
  std::string_view FramePayload(std::string_view payload);
  std::string Tail(std::string_view finish_reason) const;

  const Speaker& speaker_;
  const bool chat_;
  const std::string opening_;  // data: {"id":...,"choices":[
  std::string before_;         // opening_ and all that stands before a token's text
  std::string after_;          // what follows it, while more will come
  std::string usage_;          // in the event with the finish_reason; empty: none
  std::string token_;
  std::string out_;
};

// {"error": ...}, as vLLM writes it.
std::string ErrorBody(std::string_view message, std::string_view type, std::string_view param,
                      int code);

}  // namespace fathom
