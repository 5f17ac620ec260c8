#include "lab/mock/field_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/text.h"

namespace fathom {
namespace {

constexpr double kWordLimit = 9223372036854775807.0;
constexpr std::string_view kWordText = "9223372036854775807";

}  // namespace

FieldJudge::Place Below(const FieldJudge::Place& place, std::string step) {
  FieldJudge::Place below = place;
  below.push_back(std::move(step));
  return below;
}

BodyMembers MembersOf(std::string_view object) {
  BodyMembers members;
  JsonScanner scanner(object);
  for (auto member = scanner.Next(); member && *member; member = scanner.Next()) {
    members.push_back(**member);
  }
  return members;
}

bool IsJsonNumber(std::string_view raw) {
  return !raw.empty() && (raw[0] == '-' || (raw[0] >= '0' && raw[0] <= '9'));
}

bool IsWholeNumber(std::string_view raw) { return raw.find_first_of(".eE") == raw.npos; }

double ToDouble(std::string_view raw) { return std::strtod(std::string(raw).c_str(), nullptr); }

void FieldJudge::Integer(const Place& place, std::string_view raw) {
  if (raw == "true" || raw == "false") return;
  if (raw.starts_with('"')) {
    const std::string_view text = raw.substr(1, raw.size() - 2);
    const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
    if (!digits.empty() && digits.find_first_not_of("0123456789") == digits.npos) return;
    Say("int_parsing", place,
        "Input should be a valid integer, unable to parse string as an integer", raw);
  } else if (!IsJsonNumber(raw)) {
    Say("int_type", place, "Input should be a valid integer", raw);
  } else if (!IsWholeNumber(raw) && std::isinf(ToDouble(raw))) {
    Say("finite_number", place, "Input should be a finite number", raw);
  } else if (!IsWholeNumber(raw) && ToDouble(raw) != std::trunc(ToDouble(raw))) {
    Say("int_from_float", place,
        "Input should be a valid integer, got a number with a fractional part", raw);
  }
}

void FieldJudge::Word64(const Place& place, std::string_view raw) {
  const size_t before = problems_.size();
  Integer(place, raw);
  if (problems_.size() > before || !IsJsonNumber(raw)) return;
  const double value = ToDouble(raw);
  if (value > kWordLimit || (value == kWordLimit && raw > kWordText)) {
    Say("less_than_equal", place,
        fmt::format("Input should be less than or equal to {}", kWordText), raw,
        fmt::format("{{'le': {}}}", kWordText));
  } else if (value < -kWordLimit) {
    Say("greater_than_equal", place,
        "Input should be greater than or equal to -9223372036854775808", raw,
        "{'ge': -9223372036854775808}");
  }
}

void FieldJudge::Number(const Place& place, std::string_view raw) {
  if (raw == "true" || raw == "false" || IsJsonNumber(raw)) return;
  if (!raw.starts_with('"')) {
    Say("float_type", place, "Input should be a valid number", raw);
    return;
  }
  const std::string text(raw.substr(1, raw.size() - 2));
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  if (!text.empty() && end == text.c_str() + text.size()) return;
  Say("float_parsing", place, "Input should be a valid number, unable to parse string as a number",
      raw);
}

void FieldJudge::Flag(const Place& place, std::string_view raw) {
  static constexpr std::array<std::string_view, 12> kWords = {
      "true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "1", "0"};
  if (raw == "true" || raw == "false") return;
  const bool text = raw.starts_with('"');
  if (text && std::ranges::any_of(kWords, [&](std::string_view word) {
        return EqualsIgnoreCase(raw.substr(1, raw.size() - 2), word);
      })) {
    return;
  }
  const double value = IsJsonNumber(raw) ? ToDouble(raw) : 0.5;
  if (value == 0 || value == 1) return;
  const bool readable = value == std::trunc(value) && std::abs(value) <= kWordLimit;
  if (text || readable) {
    Say("bool_parsing", place, "Input should be a valid boolean, unable to interpret input", raw);
  } else {
    Say("bool_type", place, "Input should be a valid boolean", raw);
  }
}

void FieldJudge::Token(const Place& place, std::string_view raw) {
  if (IsJsonNumber(raw) && IsWholeNumber(raw) && !raw.starts_with('-')) return;
  const size_t before = problems_.size();
  Integer(place, raw);
  if (problems_.size() > before || !IsJsonNumber(raw) || ToDouble(raw) >= 0) return;
  Say("greater_than_equal", place, "Input should be greater than or equal to 0", raw, "{'ge': 0}");
}

void FieldJudge::Elements(FieldForm form, const Place& place, std::string_view raw) {
  if (!List(place, raw)) return;
  JsonElements elements(raw);
  for (size_t i = 0; const auto element = elements.Next(); ++i) {
    // The usual case needs no name for its place.
    if (form == FieldForm::kToken && element->find_first_not_of("0123456789") == element->npos) {
      continue;
    }
    Judge(form, Below(place, fmt::format("{}", i)), *element);
  }
}

// A text or a list of something: wrong as both.
void FieldJudge::Texts(const Place& place, std::string_view raw, FieldForm of) {
  if (raw.starts_with('"')) return;
  const size_t before = problems_.size();
  Elements(of, place, raw);
  if (problems_.size() == before) return;
  problems_.insert(problems_.begin() + static_cast<ptrdiff_t>(before),
                   {.type = "string_type",
                    .place = place,
                    .message = "Input should be a valid string",
                    .input = std::string(raw)});
}

// Ids, lists of ids, a text, texts: what is none of them is wrong as each of them.
void FieldJudge::Prompt(const Place& place, std::string_view raw) {
  if (raw.starts_with('"')) return;
  if (raw.starts_with('[')) {
    JsonElements elements(raw);
    const auto first = elements.Next();
    if (!first) return;
    std::vector<FieldProblem> found;
    FieldJudge trial(engine_, found);
    const FieldForm of = first->starts_with('"')   ? FieldForm::kText
                         : first->starts_with('[') ? FieldForm::kIntegers
                                                   : FieldForm::kToken;
    trial.Elements(of, place, raw);
    if (found.empty()) return;
  }
  Elements(FieldForm::kToken, place, raw);
  Elements(FieldForm::kIntegers, place, raw);
  Text(place, raw);
  Elements(FieldForm::kText, place, raw);
}

void FieldJudge::Stream(const Place& place, std::string_view raw) {
  Record(place, raw);
  if (!raw.starts_with('{')) return;
  const BodyMembers members = MembersOf(raw);
  for (const std::string_view name : {"include_usage", "continuous_usage_stats"}) {
    const std::string_view value = ValueNamed(members, name);
    if (!value.empty()) Flag(Below(place, std::string(name)), value);
  }
}

void FieldJudge::Name(const Place& place, std::string_view raw) {
  Text(place, raw);
  if (raw != "\"\"") return;
  Say("value_error", place, "Value error, Model is required", raw,
      "{'error': ValueError('Model is required')}");
}

void FieldJudge::Positive(const Place& place, std::string_view raw) {
  const size_t before = problems_.size();
  Integer(place, raw);
  if (problems_.size() > before || NumberIn(raw).value_or(1) > 0) return;
  Say("value_error", place, "Value error, max_tokens must be positive", raw,
      "{'error': ValueError('max_tokens must be positive')}");
}

void FieldJudge::Judge(FieldForm form, const Place& place, std::string_view raw) {
  switch (form) {
    case FieldForm::kAnything:
      return;
    case FieldForm::kText:
      return Text(place, raw);
    case FieldForm::kInteger:
      return Integer(place, raw);
    case FieldForm::kWord64:
      return Word64(place, raw);
    case FieldForm::kNumber:
      return Number(place, raw);
    case FieldForm::kFlag:
      return Flag(place, raw);
    case FieldForm::kMap:
      return Map(place, raw);
    case FieldForm::kRecord:
      return Record(place, raw);
    case FieldForm::kList:
      List(place, raw);
      return;
    case FieldForm::kIntegers:
      return Elements(FieldForm::kInteger, place, raw);
    case FieldForm::kToken:
      return Token(place, raw);
    case FieldForm::kTokens:
      return Elements(FieldForm::kToken, place, raw);
    case FieldForm::kTexts:
      return Texts(place, raw, FieldForm::kText);
    case FieldForm::kTextOrParts:
      return Texts(place, raw, FieldForm::kRecord);
    case FieldForm::kTextOrList:
      return Texts(place, raw, FieldForm::kAnything);
    case FieldForm::kPrompt:
      return Prompt(place, raw);
    case FieldForm::kChat:
      return Chat(place, raw);
    case FieldForm::kDialogue:
      return Dialogue(place, raw);
    case FieldForm::kTools:
      return Tools(place, raw);
    case FieldForm::kSchemas:
      return Schemas(place, raw);
    case FieldForm::kStream:
      return Stream(place, raw);
    case FieldForm::kName:
      return Name(place, raw);
    case FieldForm::kPositive:
      return Positive(place, raw);
  }
}

}  // namespace fathom
