// Texts and chats into tokens and back, for the engines that have routes for it.
#include "codec/json.h"
#include "codec/json_scan.h"
#include "lab/mock/face.h"
#include "lab/mock/mock_tokenizer.h"
#include "lab/mock/prompt.h"
#include "lab/mock/visit.h"
#include "text/tokens/token_ids.h"

namespace fathom {
namespace {

Answer BadRequest(const Error& error) { return ErrorAnswer(400, "BadRequestError", error.what); }

// The value of `tokens`.
Result<std::string_view> TokensMember(std::string_view body) {
  std::string_view tokens;
  JsonScanner members(body);
  for (;;) {
    TRY(const auto member, members.Next());
    if (!member) break;
    if (JsonKeyIs(member->key, "tokens")) tokens = member->value;
  }
  if (tokens.empty()) return Fail(Blame::kCaller, "tokens are missing");
  return tokens;
}

}  // namespace

Answer TokenizePage(std::string_view body, const MockOptions& options) {
  const auto request = ParseCompletionRequest(body);
  if (!request) return BadRequest(request.error());
  const bool chat = !request->chat.messages.empty();
  if (!chat && !request->prompt.starts_with('"')) {
    return BadRequest({Blame::kCaller, "prompt must be a string"});
  }
  const auto prompts = PromptsOf(*request, chat, options);
  if (!prompts) return BadRequest(prompts.error());
  const std::vector<TokenId>& tokens = prompts->front();
  JsonWriter w;
  w.BeginObject().Key("count").Unsigned(tokens.size());
  w.Key("max_model_len").Unsigned(MaxModelLength(options)).Key("tokens").BeginArray();
  for (const TokenId token : tokens) w.Unsigned(token);
  w.EndArray();
  if (options.engine == MockedEngine::kVllm) w.Key("token_strs").Null();
  w.EndObject();
  return JsonAnswer(200, w.Take());
}

Answer DetokenizePage(std::string_view body, std::string_view text_key,
                      const MockOptions& options) {
  const auto raw = TokensMember(body);
  if (!raw) return BadRequest(raw.error());
  std::vector<TokenId> tokens;
  if (const auto read = AppendTokenIds(*raw, tokens); !read) return BadRequest(read.error());
  const MockTokenizer tokenizer(options);
  JsonWriter w;
  w.BeginObject().Key(text_key).String(tokenizer.Decode(tokens)).EndObject();
  return JsonAnswer(200, w.Take());
}

Answer MetricsAnswer(const Exposition& exposition) {
  return {.content_type = std::string(Exposition::kContentType), .body = exposition.Text()};
}

}  // namespace fathom
