#include "text/jinja/python_json.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "codec/byte_scan.h"
#include "text/jinja/bounded_text.h"
#include "text/jinja/python_text.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

class Dumper {
 public:
  Dumper(const JsonStyle& style, RenderBudget& budget) : style_(style), out_(budget) {}

  Result<> Dump(const TemplateValue& value) {
    switch (value.kind()) {
      case TemplateValue::Kind::kNone:
        out_.Add("null");
        return {};
      case TemplateValue::Kind::kBoolean:
        out_.Add(*value.boolean() ? "true" : "false");
        return {};
      case TemplateValue::Kind::kFloat:
        out_.Add(Float(*value.real()));
        return {};
      case TemplateValue::Kind::kText:
        Text(*value.text());
        return {};
      case TemplateValue::Kind::kInteger:
      case TemplateValue::Kind::kLargeInteger:
        return AppendStr(out_, value);
      case TemplateValue::Kind::kDict:
        return Dict(*value.dict());
      case TemplateValue::Kind::kSequence:
        if (value.sequence()->kind <= SequenceKind::kGroup) return List(value.sequence()->items);
        break;
      default:
        break;
    }
    return Fail(Blame::kCaller, "{} cannot be written as JSON", TypeName(value));
  }

  TemplateValue Take() && { return std::move(out_).TakeValue(); }

 private:
  static std::string Float(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return FloatText(value);
  }

  void Escape(CodePoint point, std::string_view bytes) {
    constexpr std::string_view kShort = "\"\\\n\r\t\f\b";
    constexpr std::string_view kLetters = "\"\\nrtfb";
    const uint32_t c = point.value;
    const size_t simple = c < 0x80 ? kShort.find(static_cast<char>(c)) : kShort.npos;
    if (simple != kShort.npos) {
      const char escaped[] = {'\\', kLetters[simple]};
      return out_.Add({escaped, 2});
    }
    if (c >= 0x20 && (!style_.ascii || c < 0x7f)) return out_.Add(bytes);
    if (c == 0x7f) return out_.Add(bytes);
    if (c <= 0xffff) return out_.Add(fmt::format("\\u{:04x}", c));
    if (c > kMaxCodePoint)
      return out_.Add(fmt::format("\\udc{:02x}", static_cast<uint8_t>(bytes[0])));
    const uint32_t above = c - 0x10000;
    out_.Add(fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (above >> 10), 0xdc00 + (above & 0x3ff)));
  }

  // How many bytes at the beginning stay as they are.
  size_t PlainBytes(std::string_view text) const {
    const char* const end = text.data() + text.size();
    const char* special = FindStringByte(text.data(), end);
    if (style_.ascii) {
      special = FindByte(
          text.data(), special, [](Bytes16 b) { return b.InRange(0x80, 0xff); },
          [](unsigned char c) { return c >= 0x80; });
    }
    return static_cast<size_t>(special - text.data());
  }

  void Text(std::string_view text) {
    out_.Add("\"");
    while (!text.empty() && out_.open()) {
      const size_t plain = PlainBytes(text);
      out_.Add(text.substr(0, plain));
      text.remove_prefix(plain);
      if (text.empty()) break;
      const CodePoint point = FirstCodePoint(text);
      Escape(point, text.substr(0, point.length));
      text.remove_prefix(point.length);
    }
    out_.Add("\"");
  }

  void NewLine() {
    if (!style_.indent) return;
    out_.Add("\n");
    for (size_t i = 0; i < level_ && out_.open(); ++i) out_.Add(*style_.indent);
  }

  Result<> List(const TemplateList& items) {
    if (items.empty()) {
      out_.Add("[]");
      return {};
    }
    out_.Add("[");
    ++level_;
    bool first = true;
    for (const TemplateValue& item : items) {
      if (!first) out_.Add(style_.item_separator);
      first = false;
      NewLine();
      TRY_VOID(Dump(item));
      if (!out_.open()) break;
    }
    --level_;
    NewLine();
    out_.Add("]");
    return {};
  }

  // JSON has no other keys than texts: 1 becomes "1", and None "null".
  Result<> Key(std::string_view key) {
    if (IsTextKey(key)) {
      Text(key);
      return {};
    }
    out_.Add("\"");
    TRY_VOID(Dump(KeyValue(key)));
    out_.Add("\"");
    return {};
  }

  Result<> Dict(const TemplateDict& dict) {
    if (dict.empty()) {
      out_.Add("{}");
      return {};
    }
    if (style_.sort_keys) return Sorted(dict);
    Open();
    for (const auto& member : dict) {
      TRY_VOID(Member(member));
      if (!out_.open()) break;
    }
    Close();
    return {};
  }

  Result<> Sorted(const TemplateDict& dict) {
    std::vector<const TemplateDict::value_type*> members;
    members.reserve(dict.size());
    for (const auto& member : dict) {
      members.push_back(&member);
      if (!IsTextKey(member.first)) {
        return Fail(Blame::kCaller, "keys that are not texts are not sorted");
      }
    }
    std::ranges::sort(members, {}, [](const auto* m) { return std::string_view(m->first); });
    Open();
    for (const auto* member : members) {
      TRY_VOID(Member(*member));
      if (!out_.open()) break;
    }
    Close();
    return {};
  }

  void Open() {
    out_.Add("{");
    ++level_;
    first_ = true;
  }

  Result<> Member(const TemplateDict::value_type& member) {
    if (!first_) out_.Add(style_.item_separator);
    NewLine();
    TRY_VOID(Key(member.first));
    out_.Add(style_.key_separator);
    TRY_VOID(Dump(member.second));
    first_ = false;
    return {};
  }

  void Close() {
    --level_;
    NewLine();
    out_.Add("}");
  }

  const JsonStyle& style_;
  BoundedText out_;
  size_t level_ = 0;
  bool first_ = true;  // of the members of the object that was opened last
};

}  // namespace

Result<TemplateValue> DumpJson(const TemplateValue& value, const JsonStyle& style,
                               RenderBudget& budget) {
  Dumper dumper(style, budget);
  TRY_VOID(dumper.Dump(value));
  return std::move(dumper).Take();
}

}  // namespace fathom
