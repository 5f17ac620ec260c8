// Texts and chats into tokens and back, for the engines that have routes for it.
#include <fmt/format.h>

#include <algorithm>
#include <expected>
#include <optional>

#include "codec/json.h"
#include "codec/json_scan.h"
#include "lab/mock/face.h"
#include "lab/mock/mock_tokenizer.h"
#include "lab/mock/prompt.h"
#include "lab/mock/request_limits.h"
#include "lab/mock/visit.h"
#include "text/tokens/token_ids.h"

namespace fathom {
namespace {

// The members of a body that has the right form.
std::expected<BodyMembers, Answer> Members(const PageRequest& request, const MockOptions& options,
                                           MockRoute route) {
  const MockedEngine engine = options.engine;
  if (!IsJsonType(request.content_type)) return std::unexpected(MediaTypeAnswer(engine, route));
  auto members = ReadMembers(engine, route, request.body);
  if (!members) return members;
  if (const auto refused = CheckSettings(engine, route, *members)) {
    return std::unexpected(RefusalAnswer(engine, route, *refused));
  }
  if (auto refused = CheckForm(engine, route, *members, request.body)) {
    return std::unexpected(*std::move(refused));
  }
  return members;
}

bool Knows(const MockOptions& options, std::string_view model) {
  return model.empty() || options.engine != MockedEngine::kVllm || IsAdapter(options, model) ||
         std::ranges::find(options.models, model) != options.models.end();
}

// What SGLang has against a body that is of the right types.
std::optional<Answer> RefusedBySglang(const BodyMembers& members, std::string_view body) {
  const bool text = !ValueNamed(members, "prompt").empty();
  const bool chat = !ValueNamed(members, "messages").empty();
  if (text != chat) return std::nullopt;
  constexpr std::string_view kOne = "Exactly one of 'prompt' or 'messages' must be provided.";
  return FormAnswer(MockedEngine::kSglang, MockRoute::kTokenize,
                    {{.type = "value_error",
                      .place = {},
                      .message = fmt::format("Value error, {}", kOne),
                      .input = std::string(body),
                      .context = fmt::format("{{'error': ValueError(\"{}\")}}", kOne)}});
}

// The tokens of a body that has been checked.
std::expected<std::vector<TokenId>, Answer> TokensOf(const BodyMembers& members,
                                                     const MockOptions& options) {
  const auto refused = [&](std::string message) {
    return std::unexpected(
        RefusalAnswer(options.engine, MockRoute::kTokenize, {.message = std::move(message)}));
  };
  const auto request = ParseCompletionRequest(members);
  if (!request) return refused(request.error().what);
  if (!Knows(options, request->model)) {
    return std::unexpected(
        RefusalAnswer(options.engine, MockRoute::kTokenize, UnknownModel(options, request->model)));
  }
  const bool chat = !request->prompt.starts_with('"');
  if (chat && !request->prompt.empty()) return refused("prompt must be a string");
  if (chat) {
    const auto limits = CheckLimits(options.engine, MockRoute::kTokenize, members, ~uint64_t{0});
    if (limits) return refused(limits->message);
  }
  auto prompts = PromptsOf(*request, chat, options);
  if (!prompts) return refused(prompts.error().what);
  return std::move(prompts->front());
}

}  // namespace

Answer TokenizePage(const PageRequest& request, const MockOptions& options) {
  const auto members = Members(request, options, MockRoute::kTokenize);
  if (!members) return members.error();
  if (options.engine == MockedEngine::kSglang) {
    if (auto refused = RefusedBySglang(*members, request.body)) return *std::move(refused);
  }
  const auto tokens = TokensOf(*members, options);
  if (!tokens) return tokens.error();
  JsonWriter w;
  w.BeginObject().Key("count").Unsigned(tokens->size());
  w.Key("max_model_len").Unsigned(MaxModelLength(options)).Key("tokens").BeginArray();
  for (const TokenId token : *tokens) w.Unsigned(token);
  w.EndArray();
  if (options.engine == MockedEngine::kVllm) w.Key("token_strs").Null();
  w.EndObject();
  return JsonAnswer(200, w.Take());
}

Answer DetokenizePage(const PageRequest& request, std::string_view text_key,
                      const MockOptions& options) {
  const auto members = Members(request, options, MockRoute::kDetokenize);
  if (!members) return members.error();
  const std::string model = JsonText(MemberNamed(*members, "model")).value_or("");
  if (!Knows(options, model)) {
    return RefusalAnswer(options.engine, MockRoute::kDetokenize, UnknownModel(options, model));
  }
  std::vector<TokenId> tokens;
  if (const auto read = AppendTokenIds(MemberNamed(*members, "tokens"), tokens); !read) {
    return RefusalAnswer(options.engine, MockRoute::kDetokenize, {.message = read.error().what});
  }
  const MockTokenizer tokenizer(options);
  JsonWriter w;
  w.BeginObject().Key(text_key).String(tokenizer.Decode(tokens)).EndObject();
  return JsonAnswer(200, w.Take());
}

Answer MetricsAnswer(const Exposition& exposition) {
  return {.content_type = std::string(Exposition::kContentType), .body = exposition.Text()};
}

}  // namespace fathom
