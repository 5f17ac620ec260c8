// Messages and tools, as the APIs describe them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lab/mock/field_judge.h"

namespace fathom {

void FieldJudge::ChatMessage(const Place& place, std::string_view raw) {
  struct Kind {
    std::string_view name;
    std::string_view role;
  };
  static constexpr std::array<Kind, 7> kKinds = {
      {{"ChatCompletionDeveloperMessageParam", "developer"},
       {"ChatCompletionSystemMessageParam", "system"},
       {"ChatCompletionUserMessageParam", "user"},
       {"ChatCompletionAssistantMessageParam", "assistant"},
       {"ChatCompletionToolMessageParam", "tool"},
       {"ChatCompletionFunctionMessageParam", "function"},
       {"CustomChatCompletionMessageParam", ""}}};
  const bool object = raw.starts_with('{');
  const BodyMembers members = object ? MembersOf(raw) : BodyMembers();
  const std::string_view role = MemberNamed(members, "role");
  const std::string_view content = MemberNamed(members, "content");
  const bool has_role = role.starts_with('"');
  const bool readable = content.empty() || content.starts_with('"') || content.starts_with('[') ||
                        content.starts_with('{') ||
                        (content == "null" && (role == "\"assistant\"" || role == "\"function\""));
  if (object && has_role && readable) return;
  for (const Kind& kind : kKinds) {
    const Place as = Below(place, std::string(kind.name));
    const auto missing = [&](std::string_view name) {
      Say("missing", Below(as, std::string(name)), "Field required", raw);
    };
    if (!object) {
      Map(as, raw);
      continue;
    }
    const bool null = kind.role == "assistant" || kind.role == "function";
    if (!readable) Content(Below(as, "content"), content, null);
    if (kind.role == "function" && MemberNamed(members, "name").empty()) missing("name");
    if (role.empty()) {
      missing("role");
    } else if (kind.role.empty()) {
      Text(Below(as, "role"), role);
    } else if (role.size() < 2 || role.substr(1, role.size() - 2) != kind.role) {
      Say("literal_error", Below(as, "role"), fmt::format("Input should be '{}'", kind.role), role,
          fmt::format("{{'expected': \"'{}'\"}}", kind.role));
    }
    if (kind.role == "tool" && MemberNamed(members, "tool_call_id").empty())
      missing("tool_call_id");
  }
  if (!object) return Record(Below(place, "Message"), raw);
  Say("missing", Below(Below(place, "Message"), "author"), "Field required", raw);
  Say("missing", Below(Below(place, "Message"), "content"), "Field required", raw);
}

void FieldJudge::Content(const Place& place, std::string_view raw, bool null) {
  if (null && raw == "null") return;
  Text(place, raw);
  if (place[place.size() - 2] == "ChatCompletionFunctionMessageParam") return;
  Say("iterable_type", place, "Input should be iterable", raw);
}

void FieldJudge::Chat(const Place& place, std::string_view raw) {
  if (!List(place, raw)) return;
  JsonElements elements(raw);
  for (size_t i = 0; const auto element = elements.Next(); ++i) {
    if (engine_ == MockedEngine::kVllm) {
      ChatMessage(Below(place, fmt::format("{}", i)), *element);
    } else {
      const Place at = Below(place, fmt::format("{}", i));
      if (!element->starts_with('{')) {
        Record(at, *element);
      } else if (!MemberNamed(MembersOf(*element), "role").starts_with('"')) {
        Say("missing", Below(at, "role"), "Field required", *element);
      }
    }
  }
}

// SGLang tells blocks apart by their type, and knows what each must have.
void FieldJudge::SglangContent(const Place& place, std::string_view raw) {
  struct Kind {
    std::string_view type;
    std::array<std::string_view, 2> required;
  };
  static constexpr std::array<Kind, 8> kKinds = {{{"text", {"text"}},
                                                  {"image", {}},
                                                  {"tool_use", {"id", "name"}},
                                                  {"tool_result", {}},
                                                  {"tool_reference", {}},
                                                  {"search_result", {}},
                                                  {"thinking", {"thinking"}},
                                                  {"redacted_thinking", {}}}};
  static constexpr std::string_view kList =
      "list[tagged-union[TextBlock,ImageBlock,ToolUseBlock,ToolResultBlock,ToolReferenceBlock,"
      "SearchResultBlock,ThinkingBlock,RedactedThinkingBlock]]";
  if (raw.starts_with('"')) return;
  const size_t before = problems_.size();
  const Place list = Below(place, std::string(kList));
  if (List(list, raw)) {
    JsonElements elements(raw);
    for (size_t i = 0; const auto element = elements.Next(); ++i) {
      const Place at = Below(list, fmt::format("{}", i));
      const BodyMembers members = element->starts_with('{') ? MembersOf(*element) : BodyMembers();
      const std::string_view type = MemberNamed(members, "type");
      if (!element->starts_with('{')) {
        Record(at, *element);
        continue;
      }
      if (type.empty()) {
        Say("union_tag_not_found", at, "Unable to extract tag using discriminator 'type'",
            *element);
        continue;
      }
      const std::string name = JsonText(type).value_or("");
      const auto* const kind = std::ranges::find(kKinds, name, &Kind::type);
      if (kind == kKinds.end()) {
        std::string expected;
        for (const Kind& known : kKinds) {
          expected += fmt::format("{}'{}'", expected.empty() ? "" : ", ", known.type);
        }
        Say("union_tag_invalid", at,
            fmt::format("Input tag '{}' found using 'type' does not match any of the expected "
                        "tags: {}",
                        name, expected),
            *element);
        continue;
      }
      for (const std::string_view member : kind->required) {
        if (member.empty() || !MemberNamed(members, member).empty()) continue;
        Say("missing", Below(Below(at, name), std::string(member)), "Field required", *element);
      }
    }
  }
  if (problems_.size() == before) return;
  problems_.insert(problems_.begin() + static_cast<ptrdiff_t>(before),
                   {.type = "string_type",
                    .place = Below(place, "str"),
                    .message = "Input should be a valid string",
                    .input = std::string(raw)});
}

// Blocks of a kind that the engine does not know; its other members are not looked at.
void FieldJudge::DialogueContent(const Place& place, std::string_view raw) {
  if (engine_ == MockedEngine::kSglang) return SglangContent(place, raw);
  static constexpr std::array<std::string_view, 9> kBlocks = {
      "text",           "image",    "tool_use",          "tool_result",
      "tool_reference", "thinking", "redacted_thinking", "tool_addition",
      "tool_removal"};
  static constexpr std::string_view kExpected =
      "'text', 'image', 'tool_use', 'tool_result', 'tool_reference', 'thinking', "
      "'redacted_thinking', 'tool_addition' or 'tool_removal'";
  if (raw.starts_with('"')) return;
  const size_t before = problems_.size();
  if (List(place, raw)) {
    JsonElements elements(raw);
    for (size_t i = 0; const auto element = elements.Next(); ++i) {
      const Place at = Below(place, fmt::format("{}", i));
      if (!element->starts_with('{')) {
        Record(at, *element);
        continue;
      }
      const std::string_view type = MemberNamed(MembersOf(*element), "type");
      const std::string_view name = type.size() > 1 ? type.substr(1, type.size() - 2) : type;
      if (std::ranges::find(kBlocks, name) != kBlocks.end()) continue;
      Say("literal_error", Below(at, "type"), fmt::format("Input should be {}", kExpected), type,
          fmt::format("{{'expected': \"{}\"}}", kExpected));
    }
  }
  if (problems_.size() == before) return;
  problems_.insert(problems_.begin() + static_cast<ptrdiff_t>(before),
                   {.type = "string_type",
                    .place = place,
                    .message = "Input should be a valid string",
                    .input = std::string(raw)});
}

void FieldJudge::Dialogue(const Place& place, std::string_view raw) {
  if (!List(place, raw)) return;
  JsonElements elements(raw);
  for (size_t i = 0; const auto element = elements.Next(); ++i) {
    const Place at = Below(place, fmt::format("{}", i));
    if (!element->starts_with('{')) {
      Record(at, *element);
      continue;
    }
    const BodyMembers members = MembersOf(*element);
    const std::string_view role = MemberNamed(members, "role");
    const std::string_view content = MemberNamed(members, "content");
    if (role.empty()) {
      Say("missing", Below(at, "role"), "Field required", *element);
    } else if (role != "\"user\"" && role != "\"assistant\"" && role != "\"system\"") {
      Say("literal_error", Below(at, "role"), "Input should be 'user', 'assistant' or 'system'",
          role, "{'expected': \"'user', 'assistant' or 'system'\"}");
    }
    if (content.empty()) {
      Say("missing", Below(at, "content"), "Field required", *element);
    } else {
      DialogueContent(Below(at, "content"), content);
    }
  }
}

void FieldJudge::Tools(const Place& place, std::string_view raw) {
  if (!List(place, raw)) return;
  JsonElements elements(raw);
  for (size_t i = 0; const auto element = elements.Next(); ++i) {
    const Place at = Below(place, fmt::format("{}", i));
    Record(at, *element);
    if (!element->starts_with('{')) continue;
    const std::string_view function = MemberNamed(MembersOf(*element), "function");
    if (function.empty()) {
      Say("missing", Below(at, "function"), "Field required", *element);
    } else if (!function.starts_with('{')) {
      Record(Below(at, "function"), function);
    } else if (MemberNamed(MembersOf(function), "name").empty()) {
      Say("missing", Below(Below(at, "function"), "name"), "Field required", function);
    }
  }
}

void FieldJudge::Schemas(const Place& place, std::string_view raw) {
  if (!List(place, raw)) return;
  JsonElements elements(raw);
  for (size_t i = 0; const auto element = elements.Next(); ++i) {
    const Place at = Below(place, fmt::format("{}", i));
    Record(at, *element);
    if (!element->starts_with('{')) continue;
    for (const std::string_view name : {"name", "input_schema"}) {
      if (!MemberNamed(MembersOf(*element), name).empty()) continue;
      Say("missing", Below(at, std::string(name)), "Field required", *element);
    }
  }
}

}  // namespace fathom
