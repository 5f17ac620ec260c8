#include "diagnose/doctor/token_look.h"

#include <algorithm>
#include <array>

#include "base/peer_text.h"
#include "base/text.h"
#include "base/wall_time.h"
#include "codec/json_scan.h"
#include "text/tokens/token_ids.h"

namespace fathom {
namespace {

struct Sample {
  std::string_view name;
  std::string_view json;  // a text, or the messages of a chat
  bool chat;
};

// Words, digits, spaces at ends of lines and other scripts: where tokenizers differ, it shows
// there.
constexpr std::array kSamples = {
    Sample{"a sentence", R"("The quick brown fox jumps over the lazy dog.")", false},
    Sample{"code and numbers", R"("def f(x):\n    return x**2 + 1234567.89  # it's\t\n\n")", false},
    Sample{"other scripts", R"("Grüße, Привет, 你好世界, नमस्ते, 😀👍🏽")", false},
    Sample{"a chat",
           R"([{"role":"system","content":"You are a careful assistant."},)"
           R"({"role":"user","content":"How deep is the sea?"},)"
           R"({"role":"assistant","content":"About 3,700 metres on average."},)"
           R"({"role":"user","content":"And at most?"}])",
           true},
};

ChatDialect DialectOf(EngineKind engine) {
  if (engine == EngineKind::kSglang) return ChatDialect::kSglang;
  return engine == EngineKind::kTrtllm ? ChatDialect::kTrtllm : ChatDialect::kVllm;
}

std::string QuestionOf(const Sample& sample, const std::string& model) {
  std::string body = "{";
  if (!model.empty()) {
    body += "\"model\":";
    AppendJsonString(body, model);
    body += ',';
  }
  body += sample.chat ? "\"messages\":" : "\"prompt\":";
  body.append(sample.json).append("}");
  return body;
}

Result<std::vector<TokenId>> Ours(const Sample& sample, const LanguageModel& model,
                                  EngineKind engine) {
  RenderedPrompt rendered;
  if (sample.chat) {
    const ChatFields chat{.messages = sample.json};
    const LanguageModel::Manner manner{.dialect = DialectOf(engine), .now = LocalSecondsNow()};
    rendered = model.RenderChat(chat, manner);
  } else {
    rendered = model.RenderText(sample.json, "", DialectOf(engine));
  }
  if (rendered.inexact) {
    return Fail(Blame::kCaller, "{}: {}", Name(*rendered.inexact), rendered.problem);
  }
  const LanguageModel::Lease encoder = model.Borrow();
  return (*encoder).Encode(rendered.prompt.text, rendered.prompt.add_special);
}

Result<std::vector<TokenId>> Theirs(std::string_view body) {
  std::vector<TokenId> tokens;
  JsonScanner members(body);
  for (;;) {
    TRY(const auto member, members.Next());
    if (!member) break;
    if (!JsonKeyIs(member->key, "tokens")) continue;
    tokens.clear();
    TRY_VOID(AppendTokenIds(member->value, tokens, TokenLook::kMaxTokens));
  }
  if (tokens.empty()) return Fail(Blame::kPeer, "the answer has no tokens");
  return tokens;
}

Task<TokenComparison> CompareSample(ReadOnlyClient& client, const Sample& sample,
                                    const LanguageModel& model, EngineKind engine,
                                    std::string model_name) {
  TokenComparison comparison{.name = std::string(sample.name)};
  const auto ours = Ours(sample, model, engine);
  if (!ours) {
    comparison.problem = "here: " + Shown(ours.error().what);
    co_return std::move(comparison);
  }
  auto asking = client.Ask("/tokenize", QuestionOf(sample, model_name));
  const auto answer = co_await asking;
  comparison.problem = WhyNot(answer, "--worker-api-key");
  if (!comparison.problem.empty()) co_return std::move(comparison);
  const auto theirs = Theirs(answer->body);
  if (!theirs) {
    comparison.problem = "/tokenize: " + Shown(theirs.error().what);
    co_return std::move(comparison);
  }
  Compare(*ours, *theirs, model.tokenizer(), comparison);
  co_return std::move(comparison);
}

}  // namespace

bool TokenLook::Compared() const {
  return std::ranges::any_of(comparisons, &TokenComparison::asked);
}

bool TokenLook::Differs() const {
  return std::ranges::any_of(comparisons, [](const TokenComparison& comparison) {
    return comparison.asked && !comparison.equal;
  });
}

void Compare(std::span<const TokenId> ours, std::span<const TokenId> theirs,
             const Tokenizer& tokenizer, TokenComparison& comparison) {
  comparison.asked = true;
  comparison.ours = ours.size();
  comparison.theirs = theirs.size();
  const auto [mine, other] = std::ranges::mismatch(ours, theirs);
  comparison.equal = mine == ours.end() && other == theirs.end();
  if (comparison.equal) return;
  comparison.position = static_cast<size_t>(mine - ours.begin());
  if (mine != ours.end()) {
    comparison.our_id = *mine;
    comparison.our_piece = Shown(tokenizer.Piece(*mine), 40);
  }
  if (other != theirs.end()) {
    comparison.their_id = *other;
    comparison.their_piece = Shown(tokenizer.Piece(*other), 40);
  }
  const auto without_first = [](auto tokens) { return tokens.subspan(tokens.empty() ? 0 : 1); };
  comparison.only_bos = std::ranges::equal(without_first(ours), theirs) ||
                        std::ranges::equal(ours, without_first(theirs));
}

Task<TokenLook> LookAtTokens(ReadOnlyClient& client, const LanguageModel& model, EngineKind engine,
                             std::string model_name) {
  TokenLook look;
  for (const Sample& sample : kSamples) {
    auto comparing = CompareSample(client, sample, model, engine, model_name);
    auto comparison = co_await comparing;
    look.comparisons.push_back(std::move(comparison));
  }
  if (!look.Compared()) look.problem = look.comparisons.front().problem;
  co_return std::move(look);
}

}  // namespace fathom
