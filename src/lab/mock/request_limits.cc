#include "lab/mock/request_limits.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "lab/mock/field_judge.h"
#include "lab/mock/python_words.h"

namespace fathom {
namespace {

constexpr double kMostSequencesOfVllm = 16384;
constexpr double kMostLogprobs = 20;
constexpr size_t kLongestSalt = 128;

using Checked = std::optional<Refusal>;

Refusal Refuse(std::string message, std::string_view param = {}) {
  return {.message = std::move(message), .param = param};
}

// vLLM ends messages about one setting with its name.
Refusal RefuseSetting(std::string_view message, std::string_view param) {
  return Refuse(fmt::format("{} (parameter={})", message, param), param);
}

// As Python prints an integer: the digits that were sent, or those of 2.0 and true.
std::string WholeText(std::string_view raw) {
  if (raw == "true" || raw == "false") return raw == "true" ? "1" : "0";
  if (raw.starts_with('"')) raw = raw.substr(1, raw.size() - 2);
  if (raw.find_first_of(".eE") == raw.npos) return std::string(raw);
  return fmt::format("{:.0f}", NumberIn(raw).value_or(0));
}

bool IsEmptyList(std::string_view raw) {
  return raw.starts_with('[') && raw.find_first_not_of(" \t\r\n", 1) == raw.size() - 1;
}

// Python's notion of it.
bool IsTrue(std::string_view raw) {
  if (raw.empty() || raw == "null" || raw == "false" || raw == "\"\"" || IsEmptyList(raw)) {
    return false;
  }
  if (raw.starts_with('{')) return raw.find_first_not_of(" \t\r\n", 1) != raw.size() - 1;
  return raw.starts_with('"') || raw.starts_with('[') || raw == "true" ||
         NumberIn(raw).value_or(0) != 0;
}

Checked CheckSalt(const BodyMembers& members) {
  const std::string_view salt = ValueNamed(members, "cache_salt");
  if (salt.empty()) return std::nullopt;
  if (!salt.starts_with('"') || salt == "\"\"") {
    return RefuseSetting("Parameter 'cache_salt' must be a non-empty string if provided.",
                         "cache_salt");
  }
  const std::string text = JsonText(salt).value_or("");
  if (text.size() <= kLongestSalt &&
      text.find_first_of(std::string_view("@/\\\0", 4)) == text.npos) {
    return std::nullopt;
  }
  return RefuseSetting(
      "Parameter 'cache_salt' must be at most 128 characters and must not contain '@', '/', "
      "'\\\\', or NUL.",
      "cache_salt");
}

Checked CheckTools(const BodyMembers& members) {
  static constexpr std::string_view kUsage =
      "Only named tools, \"none\", \"auto\" or \"required\" are supported.";
  const std::string_view tools = ValueNamed(members, "tools");
  const std::string_view choice = ValueNamed(members, "tool_choice");
  if (IsEmptyList(tools)) {
    return RefuseSetting(
        "`tools` must not be an empty array. Either provide at least one tool or omit the field "
        "entirely.",
        "tools");
  }
  if (choice.empty() || choice == "\"none\"") return std::nullopt;
  if (tools.empty()) {
    return RefuseSetting("When using `tool_choice`, `tools` must be set.", "tool_choice");
  }
  if (choice.starts_with('{') || choice == "\"auto\"" || choice == "\"required\"") {
    return std::nullopt;
  }
  return RefuseSetting(fmt::format("Invalid value for `tool_choice`: {}! {}",
                                   JsonText(choice).value_or(std::string(choice)), kUsage),
                       "tool_choice");
}

Checked CheckLogprobs(const BodyMembers& members, std::string_view name) {
  const std::string_view raw = ValueNamed(members, name);
  if (raw.empty() || raw == "true" || raw == "false") return std::nullopt;
  if (raw.starts_with('"') || raw.starts_with('[') || raw.starts_with('{')) {
    return Refuse(fmt::format("`{0}` must be an integer. (parameter={0}, value={1})", name,
                              raw.starts_with('"') ? JsonText(raw).value_or("") : std::string(raw)),
                  name);
  }
  return std::nullopt;
}

Checked CheckVllmSettings(MockRoute route, const BodyMembers& members) {
  const bool chat = route == MockRoute::kChat;
  const bool text = route == MockRoute::kCompletions;
  if (text) {
    const std::string_view prompt = ValueNamed(members, "prompt");
    if ((prompt.empty() || prompt == "\"\"") && ValueNamed(members, "prompt_embeds").empty()) {
      return RefuseSetting("Either prompt or prompt_embeds must be provided and non-empty.",
                           "prompt");
    }
  }
  if (chat) {
    if (auto refused = CheckTools(members)) return refused;
  }
  if (chat && FlagIn(MemberNamed(members, "continue_final_message")) &&
      FlagIn(MemberNamed(members, "add_generation_prompt"))) {
    return Refuse("Cannot set both `continue_final_message` and `add_generation_prompt` to True.");
  }
  for (const std::string_view name : {"prompt_logprobs", text ? "logprobs" : "top_logprobs"}) {
    if (auto refused = CheckLogprobs(members, name)) return refused;
  }
  const double prompts = NumberIn(ValueNamed(members, "prompt_logprobs")).value_or(0);
  if (FlagIn(MemberNamed(members, "stream")) && (prompts > 0 || prompts == -1)) {
    return RefuseSetting("`prompt_logprobs` are not available when `stream=True`.",
                         "prompt_logprobs");
  }
  if (chat && NumberIn(ValueNamed(members, "top_logprobs")).value_or(0) != 0 &&
      !FlagIn(MemberNamed(members, "logprobs"))) {
    return RefuseSetting("when using `top_logprobs`, `logprobs` must be set to true.",
                         "top_logprobs");
  }
  if (IsTrue(MemberNamed(members, "stream_options")) && !IsTrue(MemberNamed(members, "stream"))) {
    return RefuseSetting("Stream options can only be defined when `stream=True`.",
                         "stream_options");
  }
  return CheckSalt(members);
}

// A number between two others, each of them allowed or not.
struct Range {
  std::string_view name;
  double least;
  double most;
  bool least_itself;
  std::string_view message;  // behind the name; {} is the value
  bool names_parameter;      // at its end, in vLLM
};

constexpr std::array<Range, 8> kVllmRanges = {
    {{"presence_penalty", -2, 2, true, "must be in [-2, 2], got {}.", false},
     {"frequency_penalty", -2, 2, true, "must be in [-2, 2], got {}.", false},
     {"repetition_penalty", 0, HUGE_VAL, false, "must be greater than zero, got {}.", false},
     {"temperature", 0, HUGE_VAL, true, "must be non-negative, got {}.", true},
     {"temperature", 0, 2, true, "must be in [0, 2], got {}.", true},
     {"top_p", 0, 1, false, "must be in (0, 1], got {}.", true},
     {"top_k", -1, HUGE_VAL, true, "must be 0 (disable), or at least 1, got {}.", false},
     {"min_p", 0, 1, true, "must be in [0, 1], got {}.", false}}};

constexpr std::array<Range, 7> kSglangRanges = {
    {{"temperature", 0, 1e308, true, "must be a non-negative finite number, got {}.", false},
     {"top_p", 0, 1, false, "must be in (0, 1], got {}.", false},
     {"min_p", 0, 1, true, "must be in [0, 1], got {}.", false},
     {"frequency_penalty", -2, 2, true, "must be in [-2, 2], got {}.", false},
     {"presence_penalty", -2, 2, true, "must be in [-2, 2], got {}.", false},
     {"repetition_penalty", 0, 2, false, "must be in (0, 2] (1.0 = no penalty), got {}.", false},
     {"top_k", -1, HUGE_VAL, true, "must be -1 (disable) or at least 1, got {}.", false}}};

Checked CheckRange(const Range& range, const BodyMembers& members) {
  const std::string_view raw = ValueNamed(members, range.name);
  if (raw.empty()) return std::nullopt;
  const double value = NumberIn(raw).value_or(0);
  const bool high_enough = range.least_itself ? value >= range.least : value > range.least;
  const bool whole = range.name == "top_k";
  if (high_enough && value <= range.most && (whole || std::isfinite(value))) return std::nullopt;
  const std::string shown = whole ? WholeText(raw) : PythonFloat(value);
  std::string_view form = range.message;
  if (!std::isfinite(value) && range.name == "temperature" && range.names_parameter) {
    form = "must be a finite number, got {}.";
  }
  std::string message = fmt::format("{} {}", range.name, fmt::format(fmt::runtime(form), shown));
  if (!range.names_parameter) return Refuse(std::move(message));
  return Refuse(fmt::format("{} (parameter={}, value={})", message, range.name, shown), range.name);
}

// The member that limits the answer, and the name that vLLM has for it.
struct TokenLimitMember {
  std::string_view name;
  std::string_view raw;
};
TokenLimitMember LimitOf(MockRoute route, const BodyMembers& members) {
  if (route == MockRoute::kResponses) {
    return {"max_output_tokens", ValueNamed(members, "max_output_tokens")};
  }
  if (route == MockRoute::kMessages) {
    return {"max_completion_tokens", ValueNamed(members, "max_tokens")};
  }
  const std::string_view newer = ValueNamed(members, "max_completion_tokens");
  if (route == MockRoute::kChat && !newer.empty()) return {"max_completion_tokens", newer};
  return {"max_tokens", ValueNamed(members, "max_tokens")};
}

Checked CheckStops(const BodyMembers& members) {
  const std::string_view stop = ValueNamed(members, "stop");
  bool empty = stop == "\"\"";
  if (stop.starts_with('[')) {
    JsonElements elements(stop);
    while (const auto element = elements.Next()) empty = empty || *element == "\"\"";
  }
  if (!empty) return std::nullopt;
  return Refuse("stop cannot contain an empty string.");
}

Checked CheckVllmCounts(const TokenLimitMember& limit, const BodyMembers& members) {
  const std::string_view least = ValueNamed(members, "min_tokens");
  const double most = NumberIn(limit.raw).value_or(HUGE_VAL);
  if (most < 1) {
    return Refuse(fmt::format("max_tokens must be at least 1, got {0}. (parameter=max_tokens, "
                              "value={0})",
                              WholeText(limit.raw)),
                  "max_tokens");
  }
  if (NumberIn(least).value_or(0) < 0) {
    return Refuse(
        fmt::format("min_tokens must be greater than or equal to 0, got {}.", WholeText(least)));
  }
  if (NumberIn(least).value_or(0) > most) {
    return Refuse(fmt::format("min_tokens must be less than or equal to max_tokens={}, got {}.",
                              WholeText(limit.raw), WholeText(least)));
  }
  return std::nullopt;
}

Checked CheckVllmChoices(const BodyMembers& members) {
  const std::string_view n = ValueNamed(members, "n");
  const double choices = NumberIn(n).value_or(1);
  if (choices < 1) return Refuse(fmt::format("n must be at least 1, got {}.", WholeText(n)));
  if (choices > kMostSequencesOfVllm) {
    return Refuse(
        fmt::format("n must be at most 16384, got {}. To increase this limit, set the "
                    "VLLM_MAX_N_SEQUENCES environment variable.",
                    WholeText(n)));
  }
  const std::string_view temperature = ValueNamed(members, "temperature");
  if (choices > 1 && !temperature.empty() && NumberIn(temperature).value_or(1) == 0) {
    return Refuse(fmt::format("n must be 1 when using greedy sampling, got {}.", WholeText(n)));
  }
  return std::nullopt;
}

// The tool of that name, among those of a request to /v1/messages.
bool HasTool(std::string_view tools, std::string_view name) {
  if (!tools.starts_with('[')) return false;
  JsonElements elements(tools);
  while (const auto element = elements.Next()) {
    if (!element->starts_with('{')) continue;
    if (JsonText(MemberNamed(MembersOf(*element), "name")).value_or("") == name) return true;
  }
  return false;
}

// What tool_choice demands of the tools.
Checked CheckMessagesChoice(MockedEngine engine, const BodyMembers& members) {
  const std::string_view choice = ValueNamed(members, "tool_choice");
  if (!choice.starts_with('{')) return std::nullopt;
  const BodyMembers chosen = MembersOf(choice);
  const std::string_view tools = ValueNamed(members, "tools");
  const std::string name = JsonText(MemberNamed(chosen, "name")).value_or("");
  const std::string_view type = MemberNamed(chosen, "type");
  if (type == "\"tool\"" && !HasTool(tools, name)) {
    return Refuse(engine == MockedEngine::kVllm
                      ? fmt::format("The tool with name '{}' is not found in the tools list.", name)
                      : fmt::format("tool_choice references tool '{}' but it is not in the "
                                    "forwarded tools list (server-side Anthropic tools cannot be "
                                    "selected)",
                                    name));
  }
  const bool none = tools.empty() || IsEmptyList(tools);
  if (engine != MockedEngine::kSglang || type != "\"any\"" || !none) return std::nullopt;
  return Refuse(
      "tool_choice='any' requires at least one custom tool; all supplied tools were server-side "
      "Anthropic built-ins which the OpenAI-compatible backend cannot invoke");
}

// Prompts and messages that are there and hold nothing.
Checked CheckVllmContents(MockRoute route, const BodyMembers& members) {
  static constexpr std::string_view kNoMessage =
      "Cannot apply chat template to an empty conversation. Provide at least one message.";
  const std::string_view messages = MemberNamed(members, "messages");
  if (IsEmptyList(messages) ||
      (route == MockRoute::kResponses && IsEmptyList(MemberNamed(members, "input")))) {
    return Refuse(std::string(kNoMessage));
  }
  const std::string_view prompt = MemberNamed(members, "prompt");
  if (route != MockRoute::kCompletions || !prompt.starts_with('[')) return std::nullopt;
  if (IsEmptyList(prompt)) return Refuse("You must pass at least one prompt");
  JsonElements elements(prompt);
  if (const auto first = elements.Next();
      first && !first->starts_with('"') && !first->starts_with('[')) {
    return std::nullopt;
  }
  JsonElements again(prompt);
  while (const auto element = again.Next()) {
    if (*element == "\"\"" || IsEmptyList(*element)) {
      return Refuse("The decoder prompt cannot be empty");
    }
  }
  return std::nullopt;
}

Checked CheckVllmLimits(MockRoute route, const BodyMembers& members, uint64_t longest) {
  const TokenLimitMember limit = LimitOf(route, members);
  if (NumberIn(limit.raw).value_or(0) > static_cast<double>(longest)) {
    return Refuse(fmt::format("{0}={1} cannot be greater than max_model_len={2}. Please request "
                              "fewer output tokens. (parameter={0}, value={1})",
                              limit.name, WholeText(limit.raw), longest),
                  limit.name);
  }
  if (auto refused = CheckVllmContents(route, members)) return refused;
  if (route == MockRoute::kMessages) {
    if (auto refused = CheckMessagesChoice(MockedEngine::kVllm, members)) return refused;
  }
  if (auto refused = CheckVllmChoices(members)) return refused;
  for (const Range& range : kVllmRanges) {
    if (auto refused = CheckRange(range, members)) return refused;
  }
  if (auto refused = CheckVllmCounts(limit, members)) return refused;
  const std::string_view logprobs = ValueNamed(members, "logprobs");
  if (route == MockRoute::kCompletions && NumberIn(logprobs).value_or(0) > kMostLogprobs) {
    return Refuse(fmt::format("Requested sample logprobs of {0}, which is greater than max "
                              "allowed: 20 (parameter=logprobs, value={0})",
                              WholeText(logprobs)),
                  "logprobs");
  }
  return CheckStops(members);
}

// SGLang looks at contents first, and has another type for what its sampler refuses.
Checked CheckSglangLimits(MockRoute route, const BodyMembers& members) {
  if (IsEmptyList(MemberNamed(members, "messages"))) return Refuse("Messages cannot be empty.");
  if (route == MockRoute::kMessages) {
    if (auto refused = CheckMessagesChoice(MockedEngine::kSglang, members)) return refused;
  }
  const std::string_view prompt = MemberNamed(members, "prompt");
  if (route == MockRoute::kCompletions && (prompt == "\"\"" || IsEmptyList(prompt))) {
    return Refuse("Prompt cannot be empty");
  }
  Checked refused;
  for (const Range& range : kSglangRanges) {
    if (!refused) refused = CheckRange(range, members);
  }
  const TokenLimitMember limit = LimitOf(route, members);
  if (!refused && NumberIn(limit.raw).value_or(0) < 0) {
    refused =
        Refuse(fmt::format("max_new_tokens must be at least 0, got {}.", WholeText(limit.raw)));
  }
  const std::string_view least = ValueNamed(members, "min_tokens");
  if (!refused && NumberIn(least).value_or(0) > NumberIn(limit.raw).value_or(HUGE_VAL)) {
    refused = Refuse(fmt::format("min_new_tokens must be in [0, max_new_tokens({})], got {}.",
                                 WholeText(limit.raw), WholeText(least)));
  }
  if (refused) refused->type = "BadRequest";
  return refused;
}

}  // namespace

std::optional<Refusal> CheckSettings(MockedEngine engine, MockRoute route,
                                     const BodyMembers& members) {
  const bool generates = route == MockRoute::kCompletions || route == MockRoute::kChat;
  if (engine == MockedEngine::kVllm && generates) return CheckVllmSettings(route, members);
  if (engine == MockedEngine::kVllm && route == MockRoute::kTokenize &&
      FlagIn(MemberNamed(members, "continue_final_message")) &&
      FlagIn(MemberNamed(members, "add_generation_prompt"))) {
    return Refuse("Cannot set both `continue_final_message` and `add_generation_prompt` to True.");
  }
  return std::nullopt;
}

std::optional<Refusal> CheckLimits(MockedEngine engine, MockRoute route, const BodyMembers& members,
                                   uint64_t longest) {
  switch (engine) {
    case MockedEngine::kVllm:
      return CheckVllmLimits(route, members, longest);
    case MockedEngine::kSglang:
      return CheckSglangLimits(route, members);
    case MockedEngine::kTrtllm:
      break;
  }
  return std::nullopt;
}

}  // namespace fathom
