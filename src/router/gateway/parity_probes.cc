#include "router/gateway/parity_probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "router/gateway/chat_fields.h"

namespace fathom {
namespace {

constexpr std::string_view kPlainChat =
    R"({"messages":[{"role":"user","content":"How deep is the water at the pier?"}]})";

// Escapes where an editor might change the text: an accent as one character and as two, spaces of
// several widths, a tab, an emoji that is joined of several, a flag.
constexpr std::string_view kManyScripts =
    R"(Depth 12345678.90 m at 07:15,   tide\t+3%\n\n\n  caf\u00e9 cafe\u0301 \u212b \ufb01sh )"
    R"(\u00a0\u3000 \u6c34\u6df1\u306f\u4f55\u30e1\u30fc\u30c8\u30eb? \ud55c\uad6d\uc5b4 )"
    R"(\u0433\u043b\u0443\u0431\u0438\u043d\u0430 \u0639\u0645\u0642 )"
    R"(\ud83d\udc69\u200d\ud83d\ude80 \ud83c\udde8\ud83c\udde6 it's WE'LL don't_x)";

constexpr std::string_view kToolChat =
    R"({"messages":[{"role":"user","content":"How deep is it at buoy 7?"},)"
    R"({"role":"assistant","content":"","tool_calls":[{"id":"call_00001","type":"function",)"
    R"("function":{"name":"sound","arguments":"{\"buoy\": 7, \"unit\": \"m\"}"}}]},)"
    R"({"role":"tool","tool_call_id":"call_00001","content":"{\"depth\": 4.5}"}],)"
    R"("tools":[{"type":"function","function":{"name":"sound","description":"Sounds the depth.",)"
    R"("parameters":{"type":"object","properties":{"buoy":{"type":"integer"},)"
    R"("unit":{"type":"string","enum":["m","ft"]}},"required":["buoy"]}}}]})";

constexpr std::string_view kDeveloperChat =
    R"({"messages":[{"role":"developer","content":"Answer briefly."},)"
    R"({"role":"user","content":"Is it high tide?"}]})";

constexpr std::string_view kChatWithOptions =
    R"({"messages":[{"role":"user","content":"Is it low tide?"}],)"
    R"("chat_template_kwargs":{"enable_thinking":false}})";

constexpr std::string_view kMessages =
    R"({"system":[{"type":"text","text":"You pilot ships. "},)"
    R"({"type":"text","text":"Be brief."}],)"
    R"("messages":[{"role":"user","content":[{"type":"text","text":"How deep is it at buoy 7?"}]},)"
    R"({"role":"assistant","content":[{"type":"tool_use","id":"toolu_0001","name":"sound",)"
    R"("input":{"buoy":7,"unit":"m"}}]},)"
    R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0001",)"
    R"("content":"4.5"}]}],)"
    R"("tools":[{"name":"sound","description":"Sounds the depth.","input_schema":)"
    R"({"type":"object","properties":{"buoy":{"type":"integer"}},"required":["buoy"]}}]})";

// Without tools: /tokenize takes those of chats only.
constexpr std::string_view kResponses =
    R"({"instructions":"You pilot ships. Be brief.","input":[{"role":"user","content":)"
    R"([{"type":"input_text","text":"How deep is it at buoy 7?"}]},{"role":"assistant","content":)"
    R"([{"type":"output_text","text":"4.5 m","annotations":[]}]},)"
    R"({"role":"user","content":"And at low tide?"}]})";

constexpr size_t kMostSpecials = 6;

// What the template itself writes as special tokens, as a text of the user.
std::string SpecialsOf(const LanguageModel& model, const LanguageModel::Manner& manner) {
  const auto fields = ReadRequestFields(kPlainChat);
  if (!fields) return {};
  const RenderedPrompt rendered =
      model.RenderChat(ChatOf(PartsOf(fields->parts, kInChats)), manner);
  std::vector<TextPiece> pieces;
  model.tokenizer().Split(rendered.prompt.text, pieces);
  std::vector<TokenId> seen;
  std::string text;
  for (const TextPiece& piece : pieces) {
    if (!piece.is_token() || seen.size() == kMostSpecials) continue;
    if (std::ranges::find(seen, piece.token) != seen.end()) continue;
    seen.push_back(piece.token);
    text.append("Is ").append(model.tokenizer().Piece(piece.token)).append(" a depth? ");
  }
  return text;
}

std::string ChatAbout(std::string_view json_text) {
  return fmt::format(
      R"({{"messages":[{{"role":"system","content":"You pilot ships."}},)"
      R"({{"role":"user","content":{}}},{{"role":"assistant","content":"Four meters."}},)"
      R"({{"role":"user","content":"And now?"}}]}})",
      json_text);
}

}  // namespace

PromptFields ParityProbe::Parts() const {
  const auto fields = ReadRequestFields(body);
  return fields ? PartsOf(fields->parts, api) : PromptFields();
}

std::vector<ParityProbe> ParityProbesFor(const LanguageModel& model,
                                         const LanguageModel::Manner& manner) {
  std::vector<ParityProbe> probes;
  const std::string scripts = fmt::format("\"{}\"", kManyScripts);
  // First the one that every engine with such an endpoint answers.
  probes.push_back({kInCompletions, fmt::format(R"({{"prompt":{}}})", scripts)});
  if (!model.telling_text().empty()) {
    std::string telling;
    AppendJsonString(telling, model.telling_text());
    probes.push_back({kInCompletions, fmt::format(R"({{"prompt":{}}})", telling)});
  }
  probes.push_back({kInChats, std::string(kPlainChat)});
  probes.push_back({kInChats, ChatAbout(scripts)});
  if (const std::string specials = SpecialsOf(model, manner); !specials.empty()) {
    std::string text;
    AppendJsonString(text, specials);
    probes.push_back({kInChats, ChatAbout(text)});
  }
  probes.push_back({kInChats, std::string(kToolChat)});
  probes.push_back({kInChats, std::string(kDeveloperChat)});
  probes.push_back({kInChats, std::string(kChatWithOptions)});
  probes.push_back({kInMessages, std::string(kMessages)});
  probes.push_back({kInResponses, std::string(kResponses)});
  return probes;
}

std::optional<std::vector<TokenId>> TokensByFiles(const LanguageModel& model,
                                                  const PromptFields& parts,
                                                  const LanguageModel::Manner& manner) {
  const RenderedPrompt rendered =
      parts.prompt.empty()
          ? model.RenderChat(ChatOf(parts), manner)
          : model.RenderText(parts.prompt, parts.add_special_tokens, manner.dialect);
  if (rendered.inexact) return std::nullopt;
  const LanguageModel::Lease encoder = model.Borrow();
  auto tokens = (*encoder).Encode(rendered.prompt.text, rendered.prompt.add_special);
  if (!tokens) return std::nullopt;
  return *std::move(tokens);
}

}  // namespace fathom
