#include "cli/prompt_report.h"

#include <fmt/format.h>

#include <utility>

#include "base/wall_time.h"
#include "codec/json.h"
#include "codec/json_scan.h"
#include "router/gateway/chat_fields.h"
#include "router/gateway/request_fields.h"
#include "text/tokens/key_chain.h"
#include "text/tokens/token_ids.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

ChatDialect DialectOf(const std::string& engine) {
  if (engine == "sglang") return ChatDialect::kSglang;
  return engine == "trtllm" ? ChatDialect::kTrtllm : ChatDialect::kVllm;
}

uint64_t SeedOf(const Settings& settings, std::string_view request_salt) {
  const std::string salt =
      request_salt.empty() ? settings.Text("cache-salt") : JsonText(request_salt).value_or("");
  return NamespaceSeed(settings.Text("lora"), salt);
}

std::string_view WantedBy(PromptApis apis) {
  if (apis == kInResponses) return "input";
  if (apis == kInCompletions) return "prompt";
  return "messages";
}

// A token's text with visible boundaries and special characters.
std::string Visible(std::string_view piece) {
  std::string out = "\"";
  while (!piece.empty()) {
    const CodePoint next = FirstCodePoint(piece);
    if (next.value == kNotUtf8) {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(piece[0]));
    } else if (next.value == '\n') {
      out += "\\n";
    } else if (next.value == '"' || next.value == '\\') {
      out += fmt::format("\\{}", piece[0]);
    } else if (next.value < ' ' || (next.value >= 0x7f && next.value <= 0x9f)) {
      out += fmt::format("\\u{:04x}", next.value);
    } else {
      out += piece.substr(0, next.length);
    }
    piece.remove_prefix(next.length);
  }
  return out + '"';
}

std::string Hex(uint64_t key) { return fmt::format("{:016x}", key); }

}  // namespace

PromptReporter::PromptReporter(const LanguageModel& model, const Settings& settings)
    : model_(model), settings_(settings) {}

Result<PromptReport> PromptReporter::OfText(std::string text) const {
  if (const size_t wrong = FindNotUtf8(text); wrong != std::string::npos) {
    return Fail(Blame::kCaller,
                "byte {} of the input is not UTF-8 (0x{:02x}); engines accept only UTF-8 text",
                wrong, static_cast<uint8_t>(text[wrong]));
  }
  RenderedPrompt rendered;
  rendered.prompt = {.text = std::move(text), .add_special = settings_.Flag("special-tokens")};
  return OfPrompt(std::move(rendered), SeedOf(settings_, ""));
}

Result<PromptReport> PromptReporter::OfRequest(std::string_view body, PromptApis apis) const {
  TRY(const RequestFields fields, ReadRequestFields(body));
  const uint64_t seed = SeedOf(settings_, fields.cache_salt);
  const PromptFields parts = PartsOf(fields.parts, apis);
  const std::string_view prompt = parts.prompt;
  if (prompt.starts_with('[')) {
    PromptReport report;
    TRY_VOID(AppendTokenIds(prompt, report.ids));
    return WithKeys(std::move(report), seed);
  }
  if (!prompt.empty()) {
    const ChatDialect dialect = DialectOf(settings_.Choice("engine"));
    return OfPrompt(model_.RenderText(prompt, parts.add_special_tokens, dialect), seed);
  }
  if (parts.messages.empty() && parts.input.empty()) {
    return Fail(Blame::kCaller, "the request has no {}", WantedBy(apis));
  }
  std::optional<std::string> parser;
  const std::string& named = settings_.Text("reasoning-parser");
  if (!named.empty()) parser = named == "none" ? "" : named;
  const LanguageModel::Manner manner{.dialect = DialectOf(settings_.Choice("engine")),
                                     .literal_user_text = settings_.Flag("literal-user-text"),
                                     .reasoning_parser = parser,
                                     .now = LocalSecondsNow()};
  return OfPrompt(model_.RenderChat(ChatOf(parts), manner), seed);
}

Result<PromptReport> PromptReporter::OfPrompt(RenderedPrompt rendered, uint64_t seed) const {
  if (rendered.inexact && !rendered.problem.empty()) {
    return Fail(Blame::kCaller, "{}: {}", Name(*rendered.inexact), rendered.problem);
  }
  Gauge bytes;
  TokenCache nothing(0, bytes);
  PromptReport report{.prompt = rendered.prompt.text, .inexact = rendered.inexact};
  if (rendered.prompt.literal_marks) report.prompt = WithoutLiteralMarks(*report.prompt);
  PromptParts parts({model_.tokenizer(), nothing, {}, 0}, std::move(rendered.prompt));
  const LanguageModel::Lease encoder = model_.Borrow();
  TRY_VOID(parts.Complete(*encoder));
  parts.AppendTo(report.ids);
  return WithKeys(std::move(report), seed);
}

PromptReport PromptReporter::WithKeys(PromptReport report, uint64_t seed) const {
  report.block_size = static_cast<uint32_t>(settings_.Integer("block-size"));
  std::vector<uint64_t> storage;
  KeyChain chain(report.ids, {.size = report.block_size}, seed, storage);
  const std::span<const uint64_t> keys = chain.All();
  report.keys.assign(keys.begin(), keys.end());
  return report;
}

std::string AsJson(const PromptReport& report) {
  JsonWriter w;
  w.BeginObject().Key("prompt");
  report.prompt ? w.String(*report.prompt) : w.Null();
  w.Key("ids").BeginArray();
  for (const TokenId id : report.ids) w.Unsigned(id);
  w.EndArray().Key("block_size").Unsigned(report.block_size).Key("keys").BeginArray();
  for (const uint64_t key : report.keys) w.String(Hex(key));
  w.EndArray().Key("exact").Bool(!report.inexact).Key("inexact");
  report.inexact ? w.String(Name(*report.inexact)) : w.Null();
  w.EndObject();
  return w.Take() + "\n";
}

std::string AsText(const PromptReport& report, const Tokenizer& tokenizer) {
  std::string out;
  if (report.prompt) {
    out += fmt::format("prompt: {} bytes\n\n{}\n\n", report.prompt->size(), *report.prompt);
  }
  if (report.inexact) {
    out += fmt::format("exact up to here only; what follows is: {}\n\n", Name(*report.inexact));
  }
  out += fmt::format("ids: {} tokens\n\n", report.ids.size());
  for (size_t i = 0; i < report.ids.size(); ++i) {
    out += fmt::format("{:>8}  {:>7}  {}\n", i, report.ids[i],
                       Visible(tokenizer.Piece(report.ids[i])));
  }
  out += fmt::format("\nkeys: {} complete blocks of {} tokens\n", report.keys.size(),
                     report.block_size);
  for (size_t i = 0; i < report.keys.size(); ++i) {
    if (i == 0) out += '\n';
    out += fmt::format("{:>8}  tokens {} to {}  {}\n", i, i * report.block_size,
                       (i + 1) * report.block_size - 1, Hex(report.keys[i]));
  }
  return out;
}

}  // namespace fathom
