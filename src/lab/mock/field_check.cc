#include "lab/mock/field_check.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "lab/mock/field_judge.h"

namespace fathom {
namespace {

// Where the rule of this member stands; a name with escapes is looked up without them.
std::optional<size_t> PlaceOf(const FieldRules& rules, std::string_view key) {
  if (!key.contains('\\')) return rules.Find(key);
  const auto name = JsonText(fmt::format("\"{}\"", key));
  return name ? rules.Find(*name) : std::nullopt;
}

// A role that is a text, and a content that is a text or has parts; an assistant may have none.
bool NamesARole(std::string_view message) {
  if (!message.starts_with('{')) return false;
  std::string_view role;
  std::string_view content = "\"\"";
  JsonScanner members(message);
  for (auto member = members.Next(); member && *member; member = members.Next()) {
    if ((*member)->key == "role") role = (*member)->value;
    if ((*member)->key == "content") content = (*member)->value;
  }
  const char first = content.front();
  return role.starts_with('"') && (first == '"' || first == '[' || first == '{' ||
                                   (content == "null" && role == "\"assistant\""));
}

bool EachNamesARole(std::string_view messages) {
  if (!messages.starts_with('[')) return false;
  JsonElements elements(messages);
  while (const auto element = elements.Next()) {
    if (!NamesARole(*element)) return false;
  }
  return true;
}

// A quick look. False: a closer one is needed.
bool IsClearlyRight(FieldForm form, std::string_view raw) {
  switch (form) {
    case FieldForm::kAnything:
      return true;
    case FieldForm::kText:
    case FieldForm::kTextOrParts:
    case FieldForm::kTextOrList:
    case FieldForm::kTexts:
      return raw.starts_with('"');
    case FieldForm::kPrompt:
      return raw.starts_with('"') ||
             (raw.starts_with('[') && raw.find_first_not_of("0123456789, []") == raw.npos &&
              !raw.contains("[["));
    case FieldForm::kInteger:
    case FieldForm::kWord64:
      return raw.size() < 16 && raw.find_first_not_of("0123456789") == raw.npos;
    case FieldForm::kNumber:
      return IsJsonNumber(raw);
    case FieldForm::kFlag:
      return raw == "true" || raw == "false";
    case FieldForm::kMap:
    case FieldForm::kRecord:
      return raw.starts_with('{');
    case FieldForm::kList:
      return raw.starts_with('[');
    case FieldForm::kChat:
      return EachNamesARole(raw);
    case FieldForm::kTokens:
      return raw.starts_with('[') && raw.find_first_not_of("0123456789, ", 1) == raw.size() - 1;
    case FieldForm::kIntegers:
    case FieldForm::kToken:
    case FieldForm::kDialogue:
    case FieldForm::kTools:
    case FieldForm::kSchemas:
    case FieldForm::kStream:
    case FieldForm::kName:
    case FieldForm::kPositive:
      return false;
  }
  return false;
}

}  // namespace

std::vector<FieldProblem> CheckFields(const FieldRules& rules, MockedEngine engine,
                                      const BodyMembers& members, std::string_view body) {
  std::vector<FieldProblem> problems;
  FieldJudge judge(engine, problems);
  std::vector<std::string_view> values(rules.fields().size());
  std::vector<std::string_view> strange;
  for (const JsonScanner::Member& member : members) {
    if (const auto place = PlaceOf(rules, member.key)) {
      values[*place] = member.value;
    } else if (!rules.others() && !member.key.starts_with("mock_")) {
      strange.push_back(member.key);
    }
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const FieldRule& rule = rules.fields()[i];
    if (values[i].empty()) {
      if (rule.required) judge.Say("missing", {std::string(rule.name)}, "Field required", body);
    } else if (!(rule.null && values[i] == "null") && !IsClearlyRight(rule.form, values[i])) {
      judge.Judge(rule.form, {std::string(rule.name)}, values[i]);
    }
  }
  for (const std::string_view key : strange) {
    judge.Say("extra_forbidden", {std::string(key)}, "Extra inputs are not permitted",
              MemberNamed(members, key));
  }
  return problems;
}

}  // namespace fathom
