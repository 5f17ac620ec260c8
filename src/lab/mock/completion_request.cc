#include "lab/mock/completion_request.h"

#include <cmath>

#include "base/text.h"
#include "codec/json_scan.h"

namespace fathom {
namespace {

constexpr double kLargestCount = 9007199254740992.0;  // that a double holds exactly

// Words between the quotes of a JSON string, without decoding it: the escapes that stand for white
// space separate words, all others are part of one.
uint64_t CountWords(std::string_view quoted) {
  uint64_t words = 0;
  bool inside = false;
  for (size_t i = 1; i + 1 < quoted.size(); ++i) {
    bool space = quoted[i] == ' ';
    if (quoted[i] == '\\') {
      ++i;
      space = quoted[i] == 'n' || quoted[i] == 't' || quoted[i] == 'r';
    }
    if (!space && !inside) ++words;
    inside = !space;
  }
  return words;
}

uint64_t CountInObject(std::string_view raw) {
  uint64_t tokens = 0;
  JsonScanner members(raw);
  for (;;) {
    const auto member = members.Next();
    if (!member || !*member) return tokens;
    if (JsonKeyIs((*member)->key, "text") || JsonKeyIs((*member)->key, "content")) {
      tokens += CountTokens((*member)->value);
    }
  }
}

Result<std::optional<uint64_t>> Count(std::string_view name, std::string_view raw) {
  if (raw == "null") return std::nullopt;
  // As engines do, "5", 5.0 and true are accepted as well.
  const bool quoted = raw.size() > 1 && raw.starts_with('"');
  if (const auto number = ParseDecimal(quoted ? raw.substr(1, raw.size() - 2) : raw)) return number;
  const bool other = quoted || raw.starts_with('[') || raw.starts_with('{');
  const double number = other ? -1 : NumberIn(raw).value_or(-1);
  if (number < 0 || number > kLargestCount || number != std::trunc(number)) {
    return Fail(Blame::kCaller, "{} must be a non-negative integer", name);
  }
  return static_cast<uint64_t>(number);
}

Result<std::optional<uint64_t>> TokenLimit(std::string_view name, std::string_view raw) {
  TRY(const auto limit, Count(name, raw));
  if (limit && *limit > CompletionRequest::kMaxTokens) {
    return Fail(Blame::kCaller, "{} is larger than {}", name, CompletionRequest::kMaxTokens);
  }
  return limit;
}

Result<bool> Flag(std::string_view name, std::string_view raw) {
  if (raw == "true") return true;
  if (raw == "false" || raw == "null") return false;
  if (raw.starts_with('[') || raw.starts_with('{')) {
    return Fail(Blame::kCaller, "{} must be a boolean", name);
  }
  return FlagIn(raw);
}

Result<bool> IncludeUsage(std::string_view stream_options) {
  if (!stream_options.starts_with('{')) return false;
  JsonScanner members(stream_options);
  bool asked = false;
  for (;;) {
    TRY(const auto member, members.Next());
    if (!member) return asked;
    if (!JsonKeyIs(member->key, "include_usage")) continue;
    TRY(asked, Flag("stream_options.include_usage", member->value));
  }
}

Result<std::string> Text(std::string_view name, std::string_view raw) {
  auto text = JsonText(raw);
  if (!text) return Fail(Blame::kCaller, "{} must be a string", name);
  return *std::move(text);
}

Result<uint64_t> Choices(std::string_view raw) {
  TRY(const auto n, Count("n", raw));
  if (!n) return 1;
  if (*n < 1 || *n > CompletionRequest::kMaxChoices) {
    return Fail(Blame::kCaller, "n must be between 1 and {}, got {}",
                CompletionRequest::kMaxChoices, *n);
  }
  return *n;
}

// A text or a list of them.
Result<std::vector<std::string>> Stops(std::string_view raw) {
  std::vector<std::string> stops;
  if (raw == "null") return stops;
  if (!raw.starts_with('[')) {
    TRY(auto stop, Text("stop", raw));
    if (!stop.empty()) stops.push_back(std::move(stop));
    return stops;
  }
  JsonElements elements(raw);
  while (const auto element = elements.Next()) {
    TRY(auto stop, Text("stop", *element));
    if (!stop.empty()) stops.push_back(std::move(stop));
  }
  return stops;
}

// Raw, once it is known to be a boolean or null.
Result<std::string_view> RawFlag(std::string_view name, std::string_view raw) {
  TRY(const bool flag, Flag(name, raw));
  if (raw == "null") return std::string_view();
  return flag ? "true" : "false";
}

// What a prompt is made of. False: it is none of these.
Result<bool> TakePromptMember(const JsonScanner::Member& member, CompletionRequest& out) {
  struct Place {
    std::string_view name;
    std::string_view& value;
  };
  const Place places[] = {{"prompt", out.prompt},
                          {"input", out.chat.input},
                          {"input_ids", out.input_ids},
                          {"prompt_token_ids", out.prompt_token_ids},
                          {"messages", out.chat.messages},
                          {"tools", out.chat.tools},
                          {"tool_choice", out.chat.tool_choice},
                          {"documents", out.chat.documents},
                          {"chat_template", out.chat.chat_template},
                          {"chat_template_kwargs", out.chat.chat_template_kwargs},
                          {"reasoning_effort", out.chat.reasoning_effort},
                          {"system", out.chat.system},
                          {"thinking", out.chat.thinking},
                          {"output_config", out.chat.output_config},
                          {"instructions", out.chat.instructions},
                          {"reasoning", out.chat.reasoning},
                          {"previous_response_id", out.chat.previous_response_id}};
  for (const Place& place : places) {
    if (!JsonKeyIs(member.key, place.name)) continue;
    place.value = member.value == "null" ? std::string_view() : member.value;
    return true;
  }
  const Place flags[] = {{"add_generation_prompt", out.chat.add_generation_prompt},
                         {"continue_final_message", out.chat.continue_final_message},
                         {"add_special_tokens", out.chat.add_special_tokens}};
  for (const Place& flag : flags) {
    if (!JsonKeyIs(member.key, flag.name)) continue;
    TRY(flag.value, RawFlag(flag.name, member.value));
    return true;
  }
  return false;
}

Result<void> TakeSimulationMember(const JsonScanner::Member& member, CompletionRequest& out) {
  const auto is = [&](std::string_view name) { return JsonKeyIs(member.key, name); };
  const std::string_view raw = member.value;
  if (is("n")) {
    TRY(out.choices, Choices(raw));
  } else if (is("stop") || is("stop_sequences")) {
    TRY(out.stop, Stops(raw));
  } else if (is("cache_salt") && raw != "null") {
    TRY(out.cache_salt, Text("cache_salt", raw));
  } else if (is("return_token_ids")) {
    TRY(out.return_token_ids, Flag("return_token_ids", raw));
  } else if (is("prompt_logprobs")) {
    out.prompt_logprobs = raw != "null";
  } else if (is("routed_dp_rank") || is("data_parallel_rank")) {
    TRY(out.rank, Count("routed_dp_rank", raw));
  }
  return {};
}

Result<void> TakeMember(const JsonScanner::Member& member, CompletionRequest& out) {
  TRY(const bool taken, TakePromptMember(member, out));
  if (taken) return {};
  const auto is = [&](std::string_view name) { return JsonKeyIs(member.key, name); };
  const std::string_view raw = member.value;
  if (is("model") && raw == "null") return {};
  if (is("model")) {
    TRY(out.model, Text("model", raw));
  } else if (is("stream")) {
    TRY(out.stream, Flag("stream", raw));
  } else if (is("stream_options")) {
    TRY(out.include_usage, IncludeUsage(raw));
  } else if (is("mock_answer_bytes")) {
    TRY(out.answer_bytes, Count("mock_answer_bytes", raw));
  } else if (is("mock_stall_after")) {
    TRY(out.stall_after, Count("mock_stall_after", raw));
  } else {
    return TakeSimulationMember(member, out);
  }
  return {};
}

}  // namespace

uint64_t CountTokens(std::string_view raw) {
  if (raw.starts_with('"')) return CountWords(raw);
  if (raw.starts_with('{')) return CountInObject(raw);
  if (!raw.starts_with('[')) return raw == "null" ? 0 : 1;
  uint64_t tokens = 0;
  JsonElements elements(raw);
  while (const auto element = elements.Next()) tokens += CountTokens(*element);
  return tokens;
}

Result<CompletionRequest> ParseCompletionRequest(std::string_view body) {
  BodyMembers members;
  JsonScanner scanner(body);
  for (;;) {
    TRY(const auto member, scanner.Next());
    if (!member) return ParseCompletionRequest(members);
    members.push_back(*member);
  }
}

Result<CompletionRequest> ParseCompletionRequest(const BodyMembers& members) {
  CompletionRequest out;
  std::optional<uint64_t> old_limit;
  for (const JsonScanner::Member& member : members) {
    if (JsonKeyIs(member.key, "max_tokens")) {
      TRY(old_limit, TokenLimit("max_tokens", member.value));
    } else if (JsonKeyIs(member.key, "max_completion_tokens") ||
               JsonKeyIs(member.key, "max_output_tokens")) {
      TRY(out.max_tokens, TokenLimit("max_completion_tokens", member.value));
    } else {
      TRY_VOID(TakeMember(member, out));
    }
  }
  if (!out.max_tokens) out.max_tokens = old_limit;
  for (const std::string_view raw : {out.prompt, out.chat.messages, out.chat.input}) {
    if (!raw.empty()) out.prompt_tokens += CountTokens(raw);
  }
  return out;
}

}  // namespace fathom
