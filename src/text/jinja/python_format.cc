#include "text/jinja/python_format.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/text.h"
#include "text/jinja/format_spec.h"
#include "text/jinja/python_text.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

// Takes the digits at the beginning of `text`.
Result<size_t> TakeDigits(std::string_view& text) {
  size_t value = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    value = value * 10 + static_cast<size_t>(text.front() - '0');
    if (IsTooWide(value)) return Fail(Blame::kCaller, "a field that is too wide");
    text.remove_prefix(1);
  }
  return value;
}

char TakeOneOf(std::string_view& text, std::string_view letters) {
  if (text.empty() || letters.find(text.front()) == std::string_view::npos) return 0;
  const char taken = text.front();
  text.remove_prefix(1);
  return taken;
}

// Goes through a format of percent signs.
class PercentFormatter {
 public:
  PercentFormatter(std::string_view format, const TemplateValue& values, RenderBudget& budget)
      : rest_(format), values_(values), out_(budget) {}

  Result<TemplateValue> Run() {
    while (!rest_.empty()) {
      const size_t percent = std::min(rest_.find('%'), rest_.size());
      out_.Add(rest_.substr(0, percent));
      rest_.remove_prefix(percent);
      if (rest_.empty()) break;
      rest_.remove_prefix(1);
      TRY_VOID(Field());
    }
    const bool leftover = Tuple() != nullptr ? used_ < Tuple()->items.size()
                                             : used_ == 0 && values_.dict() == nullptr;
    if (leftover && values_.sequence() == nullptr)
      return Fail(Blame::kCaller, "more values than fields");
    if (leftover && Tuple() != nullptr) return Fail(Blame::kCaller, "more values than fields");
    return std::move(out_).TakeValue();
  }

 private:
  const TemplateSequence* Tuple() const {
    const TemplateSequence* sequence = values_.sequence();
    const bool tuple = sequence != nullptr && (sequence->kind == SequenceKind::kTuple ||
                                               sequence->kind == SequenceKind::kGroup);
    return tuple ? sequence : nullptr;
  }

  Result<const TemplateValue*> NextValue() {
    if (const TemplateSequence* tuple = Tuple()) {
      if (used_ < tuple->items.size()) return &tuple->items[used_++];
    } else if (used_++ == 0) {
      return &values_;
    }
    return Fail(Blame::kCaller, "fewer values than fields");
  }

  Result<const TemplateValue*> NamedValue() {
    const size_t close = rest_.find(')');
    if (close == std::string_view::npos) return Fail(Blame::kCaller, "an incomplete format");
    const std::string_view name = rest_.substr(1, close - 1);
    rest_.remove_prefix(close + 1);
    const TemplateDict* dict = values_.dict();
    const TemplateValue* value = dict == nullptr ? nullptr : FindMember(*dict, name);
    if (value == nullptr) return Fail(Blame::kCaller, "a named field without a value");
    return value;
  }

  Result<FormatSpec> Spec() {
    FormatSpec spec;
    bool zero = false;
    while (const char flag = TakeOneOf(rest_, "-+ #0")) {
      if (flag == '-') spec.align = '<';
      if (flag == '#') spec.alternate = true;
      if (flag == '0') zero = true;
      if (flag == '+' || (flag == ' ' && spec.sign != '+')) spec.sign = flag;
    }
    TRY(spec.width, TakeDigits(rest_));
    if (TakeOneOf(rest_, ".") != 0) {
      TRY(spec.precision, TakeDigits(rest_));
    }
    while (TakeOneOf(rest_, "hlL") != 0) {
    }
    if (zero && spec.align == 0) {
      spec.align = '=';
      spec.fill = "0";
    }
    return spec;
  }

  Result<> Field() {
    const TemplateValue* value = nullptr;
    if (rest_.starts_with('(')) {
      TRY(value, NamedValue());
    }
    TRY(FormatSpec spec, Spec());
    if (rest_.empty()) return Fail(Blame::kCaller, "an incomplete format");
    spec.type = rest_.front();
    rest_.remove_prefix(1);
    if (spec.type == '%') {
      out_.Add("%");
      return {};
    }
    if (value == nullptr) {
      TRY(value, NextValue());
    }
    return Append(*value, spec);
  }

  Result<> Append(const TemplateValue& value, FormatSpec& spec) {
    switch (spec.type) {
      case 's':
      case 'r':
        return AppendText(value, spec);
      case 'd':
      case 'i':
      case 'u':
        return AppendInteger(value, spec);
      case 'x':
      case 'X':
      case 'o':
        if (value.real() != nullptr) return Fail(Blame::kCaller, "expected an integer");
        return AppendNumber(out_, value, spec);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
        return AppendNumber(out_, value, spec);
      default:
        return Fail(Blame::kCaller, "a format that is not supported");
    }
  }

  Result<> AppendText(const TemplateValue& value, FormatSpec& spec) {
    if (spec.align != '<') spec.align = '>';
    spec.fill = " ";
    BoundedText text(out_.budget());
    TRY_VOID(spec.type == 's' ? AppendStr(text, value) : AppendRepr(text, value));
    return AppendField(out_, std::move(text).Take(), spec);
  }

  Result<> AppendInteger(const TemplateValue& value, FormatSpec& spec) {
    spec.type = 'd';
    const double* real = value.real();
    if (real == nullptr) return AppendNumber(out_, value, spec);
    if (!(std::abs(*real) < 0x1p63)) return Fail(Blame::kCaller, "a number that is too large");
    return AppendNumber(out_, TemplateValue(static_cast<int64_t>(*real)), spec);
  }

  std::string_view rest_;
  const TemplateValue& values_;
  size_t used_ = 0;
  BoundedText out_;
};

// Goes through a format of braces.
class BraceFormatter {
 public:
  BraceFormatter(std::string_view format, const Arguments& arguments, RenderBudget& budget)
      : rest_(format), arguments_(arguments), out_(budget) {}

  Result<TemplateValue> Run() {
    while (!rest_.empty()) {
      const size_t brace = std::min(rest_.find_first_of("{}"), rest_.size());
      out_.Add(rest_.substr(0, brace));
      rest_.remove_prefix(brace);
      if (rest_.starts_with("{{") || rest_.starts_with("}}")) {
        out_.Add(rest_.substr(0, 1));
        rest_.remove_prefix(2);
      } else if (!rest_.empty()) {
        TRY_VOID(Field());
      }
    }
    return std::move(out_).TakeValue();
  }

 private:
  Result<> Field() {
    const size_t close = rest_.find('}');
    if (rest_.front() == '}' || close == std::string_view::npos) {
      return Fail(Blame::kCaller, "an unmatched brace");
    }
    std::string_view field = rest_.substr(1, close - 1);
    if (field.find('{') != std::string_view::npos) {
      return Fail(Blame::kCaller, "a nested field is not supported");
    }
    rest_.remove_prefix(close + 1);
    const size_t name_end = std::min(field.find_first_of("!:"), field.size());
    TRY(const TemplateValue value, Value(field.substr(0, name_end)));
    field.remove_prefix(name_end);
    char conversion = 0;
    if (TakeOneOf(field, "!") != 0) {
      conversion = TakeOneOf(field, "rs");
      if (conversion == 0) return Fail(Blame::kCaller, "a conversion that is not supported");
    }
    if (!field.empty() && TakeOneOf(field, ":") == 0) return Fail(Blame::kCaller, "a wrong field");
    return Append(value, conversion, field);
  }

  Result<TemplateValue> Value(std::string_view path) {
    const size_t end = std::min(path.find_first_of(".["), path.size());
    if (end < path.size()) return Fail(Blame::kCaller, "a field with a path is not supported");
    if (path.empty()) return Positional(automatic_++);
    if (const auto index = ParseDecimal(path)) return Positional(*index);
    for (const auto& [name, value] : arguments_.keywords) {
      if (name == path) return value;
    }
    return Fail(Blame::kCaller, "a named field without a value");
  }

  Result<TemplateValue> Positional(size_t index) const {
    if (index < arguments_.positional.size()) return arguments_.positional[index];
    return Fail(Blame::kCaller, "fewer values than fields");
  }

  static Result<FormatSpec> Spec(std::string_view text) {
    FormatSpec spec;
    constexpr std::string_view kAligns = "<>^=";
    const size_t fill = text.empty() ? 0 : FirstCodePoint(text).length;
    if (fill < text.size() && kAligns.find(text[fill]) != std::string_view::npos) {
      spec.fill = text.substr(0, fill);
      text.remove_prefix(fill);
    }
    spec.align = TakeOneOf(text, kAligns);
    if (const char sign = TakeOneOf(text, "+- ")) spec.sign = sign;
    spec.alternate = TakeOneOf(text, "#") != 0;
    if (TakeOneOf(text, "0") != 0 && spec.align == 0) {
      spec.align = '=';
      spec.fill = "0";
    }
    TRY(spec.width, TakeDigits(text));
    spec.grouped = TakeOneOf(text, ",") != 0;
    if (TakeOneOf(text, ".") != 0) {
      TRY(spec.precision, TakeDigits(text));
    }
    spec.type = TakeOneOf(text, "dfFeEgxXobs%");
    if (!text.empty()) return Fail(Blame::kCaller, "a format that is not supported");
    return spec;
  }

  Result<> Append(const TemplateValue& value, char conversion, std::string_view spec_text) {
    TRY(FormatSpec spec, Spec(spec_text));
    const bool number =
        value.integer() != nullptr || value.real() != nullptr || value.large_integer() != nullptr;
    const bool boolean = value.boolean() != nullptr && !spec_text.empty();
    if (conversion == 0 && (number || boolean) && spec.type != 's')
      return AppendNumber(out_, value, spec);
    const bool texts =
        value.is_text() || conversion != 0 || spec_text.empty() || value.boolean() != nullptr;
    if (!texts || (spec.type != 0 && spec.type != 's')) {
      return Fail(Blame::kCaller, "a format that is not for {}", TypeName(value));
    }
    BoundedText text(out_.budget());
    TRY_VOID(conversion == 'r' ? AppendRepr(text, value) : AppendStr(text, value));
    return AppendField(out_, std::move(text).Take(), spec);
  }

  std::string_view rest_;
  const Arguments& arguments_;
  size_t automatic_ = 0;
  BoundedText out_;
};

}  // namespace

Result<TemplateValue> FormatPercent(std::string_view format, const TemplateValue& values,
                                    RenderBudget& budget) {
  return PercentFormatter(format, values, budget).Run();
}

Result<TemplateValue> FormatBraces(std::string_view format, const Arguments& arguments,
                                   RenderBudget& budget) {
  return BraceFormatter(format, arguments, budget).Run();
}

}  // namespace fathom
