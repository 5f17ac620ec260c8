#include "text/unicode/letter_case.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "text/unicode/utf8.h"

namespace fathom {
namespace {

// Letters that become several, which utf8proc's simple mappings cannot say.
struct Expansion {
  uint32_t letter;
  std::string_view upper;
  std::string_view title;
};

// clang-format off
constexpr Expansion kExpansions[] = {
    {0x00df, "SS", "Ss"},
    {0x0149, "\u02bcN", "\u02bcN"},
    {0x01f0, "J\u030c", "J\u030c"},
    {0x0390, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x03b0, "\u03a5\u0308\u0301", "\u03a5\u0308\u0301"},
    {0x0587, "\u0535\u0552", "\u0535\u0582"},
    {0x1e96, "H\u0331", "H\u0331"},
    {0x1e97, "T\u0308", "T\u0308"},
    {0x1e98, "W\u030a", "W\u030a"},
    {0x1e99, "Y\u030a", "Y\u030a"},
    {0x1e9a, "A\u02be", "A\u02be"},
    {0x1f50, "\u03a5\u0313", "\u03a5\u0313"},
    {0x1f52, "\u03a5\u0313\u0300", "\u03a5\u0313\u0300"},
    {0x1f54, "\u03a5\u0313\u0301", "\u03a5\u0313\u0301"},
    {0x1f56, "\u03a5\u0313\u0342", "\u03a5\u0313\u0342"},
    {0x1f80, "\u1f08\u0399", "\u1f88"},
    {0x1f81, "\u1f09\u0399", "\u1f89"},
    {0x1f82, "\u1f0a\u0399", "\u1f8a"},
    {0x1f83, "\u1f0b\u0399", "\u1f8b"},
    {0x1f84, "\u1f0c\u0399", "\u1f8c"},
    {0x1f85, "\u1f0d\u0399", "\u1f8d"},
    {0x1f86, "\u1f0e\u0399", "\u1f8e"},
    {0x1f87, "\u1f0f\u0399", "\u1f8f"},
    {0x1f88, "\u1f08\u0399", "\u1f88"},
    {0x1f89, "\u1f09\u0399", "\u1f89"},
    {0x1f8a, "\u1f0a\u0399", "\u1f8a"},
    {0x1f8b, "\u1f0b\u0399", "\u1f8b"},
    {0x1f8c, "\u1f0c\u0399", "\u1f8c"},
    {0x1f8d, "\u1f0d\u0399", "\u1f8d"},
    {0x1f8e, "\u1f0e\u0399", "\u1f8e"},
    {0x1f8f, "\u1f0f\u0399", "\u1f8f"},
    {0x1f90, "\u1f28\u0399", "\u1f98"},
    {0x1f91, "\u1f29\u0399", "\u1f99"},
    {0x1f92, "\u1f2a\u0399", "\u1f9a"},
    {0x1f93, "\u1f2b\u0399", "\u1f9b"},
    {0x1f94, "\u1f2c\u0399", "\u1f9c"},
    {0x1f95, "\u1f2d\u0399", "\u1f9d"},
    {0x1f96, "\u1f2e\u0399", "\u1f9e"},
    {0x1f97, "\u1f2f\u0399", "\u1f9f"},
    {0x1f98, "\u1f28\u0399", "\u1f98"},
    {0x1f99, "\u1f29\u0399", "\u1f99"},
    {0x1f9a, "\u1f2a\u0399", "\u1f9a"},
    {0x1f9b, "\u1f2b\u0399", "\u1f9b"},
    {0x1f9c, "\u1f2c\u0399", "\u1f9c"},
    {0x1f9d, "\u1f2d\u0399", "\u1f9d"},
    {0x1f9e, "\u1f2e\u0399", "\u1f9e"},
    {0x1f9f, "\u1f2f\u0399", "\u1f9f"},
    {0x1fa0, "\u1f68\u0399", "\u1fa8"},
    {0x1fa1, "\u1f69\u0399", "\u1fa9"},
    {0x1fa2, "\u1f6a\u0399", "\u1faa"},
    {0x1fa3, "\u1f6b\u0399", "\u1fab"},
    {0x1fa4, "\u1f6c\u0399", "\u1fac"},
    {0x1fa5, "\u1f6d\u0399", "\u1fad"},
    {0x1fa6, "\u1f6e\u0399", "\u1fae"},
    {0x1fa7, "\u1f6f\u0399", "\u1faf"},
    {0x1fa8, "\u1f68\u0399", "\u1fa8"},
    {0x1fa9, "\u1f69\u0399", "\u1fa9"},
    {0x1faa, "\u1f6a\u0399", "\u1faa"},
    {0x1fab, "\u1f6b\u0399", "\u1fab"},
    {0x1fac, "\u1f6c\u0399", "\u1fac"},
    {0x1fad, "\u1f6d\u0399", "\u1fad"},
    {0x1fae, "\u1f6e\u0399", "\u1fae"},
    {0x1faf, "\u1f6f\u0399", "\u1faf"},
    {0x1fb2, "\u1fba\u0399", "\u1fba\u0345"},
    {0x1fb3, "\u0391\u0399", "\u1fbc"},
    {0x1fb4, "\u0386\u0399", "\u0386\u0345"},
    {0x1fb6, "\u0391\u0342", "\u0391\u0342"},
    {0x1fb7, "\u0391\u0342\u0399", "\u0391\u0342\u0345"},
    {0x1fbc, "\u0391\u0399", "\u1fbc"},
    {0x1fc2, "\u1fca\u0399", "\u1fca\u0345"},
    {0x1fc3, "\u0397\u0399", "\u1fcc"},
    {0x1fc4, "\u0389\u0399", "\u0389\u0345"},
    {0x1fc6, "\u0397\u0342", "\u0397\u0342"},
    {0x1fc7, "\u0397\u0342\u0399", "\u0397\u0342\u0345"},
    {0x1fcc, "\u0397\u0399", "\u1fcc"},
    {0x1fd2, "\u0399\u0308\u0300", "\u0399\u0308\u0300"},
    {0x1fd3, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x1fd6, "\u0399\u0342", "\u0399\u0342"},
    {0x1fd7, "\u0399\u0308\u0342", "\u0399\u0308\u0342"},
    {0x1fe2, "\u03a5\u0308\u0300", "\u03a5\u0308\u0300"},
    {0x1fe3, "\u03a5\u0308\u0301", "\u03a5\u0308\u0301"},
    {0x1fe4, "\u03a1\u0313", "\u03a1\u0313"},
    {0x1fe6, "\u03a5\u0342", "\u03a5\u0342"},
    {0x1fe7, "\u03a5\u0308\u0342", "\u03a5\u0308\u0342"},
    {0x1ff2, "\u1ffa\u0399", "\u1ffa\u0345"},
    {0x1ff3, "\u03a9\u0399", "\u1ffc"},
    {0x1ff4, "\u038f\u0399", "\u038f\u0345"},
    {0x1ff6, "\u03a9\u0342", "\u03a9\u0342"},
    {0x1ff7, "\u03a9\u0342\u0399", "\u03a9\u0342\u0345"},
    {0x1ffc, "\u03a9\u0399", "\u1ffc"},
    {0xfb00, "FF", "Ff"},
    {0xfb01, "FI", "Fi"},
    {0xfb02, "FL", "Fl"},
    {0xfb03, "FFI", "Ffi"},
    {0xfb04, "FFL", "Ffl"},
    {0xfb05, "ST", "St"},
    {0xfb06, "ST", "St"},
    {0xfb13, "\u0544\u0546", "\u0544\u0576"},
    {0xfb14, "\u0544\u0535", "\u0544\u0565"},
    {0xfb15, "\u0544\u053b", "\u0544\u056b"},
    {0xfb16, "\u054e\u0546", "\u054e\u0576"},
    {0xfb17, "\u0544\u053d", "\u0544\u056d"},
};
// clang-format on

// Superscripts, subscripts, digits in circles and the like: digits, but not decimal ones.
struct CodePointRange {
  uint32_t first;
  uint32_t last;
};
constexpr CodePointRange kOtherDigits[] = {
    {0xb2, 0xb3},       {0xb9, 0xb9},       {0x1369, 0x1371},   {0x19da, 0x19da},
    {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
    {0x2474, 0x247c},   {0x2488, 0x2490},   {0x24ea, 0x24ea},   {0x24f5, 0x24fd},
    {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},   {0x278a, 0x2792},
    {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a}};

const Expansion* FindExpansion(uint32_t letter) {
  const auto* found = std::ranges::lower_bound(kExpansions, letter, {}, &Expansion::letter);
  return found != std::end(kExpansions) && found->letter == letter ? found : nullptr;
}

utf8proc_category_t Category(uint32_t value) {
  if (value > kMaxCodePoint) return UTF8PROC_CATEGORY_CN;
  return utf8proc_category(static_cast<utf8proc_int32_t>(value));
}

uint32_t Simple(uint32_t value, utf8proc_int32_t (*map)(utf8proc_int32_t)) {
  if (value > kMaxCodePoint) return value;
  return static_cast<uint32_t>(map(static_cast<utf8proc_int32_t>(value)));
}

// Marks and the like between letters: they do not end a word.
bool IsCaseIgnorable(uint32_t value) {
  switch (value) {
    case '\'':
    case '.':
    case ':':
    case '^':
    case '`':
    case 0xa8:
    case 0xad:
    case 0xaf:
    case 0xb4:
    case 0xb7:
    case 0xb8:
    case 0x2018:
    case 0x2019:
    case 0x2024:
    case 0x2027:
      return true;
    default:
      break;
  }
  switch (Category(value)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return false;
  }
}

// The one at the end of `text`, which must not be empty.
CodePoint LastCodePoint(std::string_view text) {
  const size_t longest = std::min<size_t>(text.size(), 4);
  for (size_t length = 1; length <= longest; ++length) {
    const CodePoint point = FirstCodePoint(text.substr(text.size() - length));
    if (point.value != kNotUtf8 && point.length == length) return point;
  }
  return {kNotUtf8, 1};
}

// Whether a sigma between these ends a word: then it is written in another way.
bool IsFinalSigma(std::string_view before, std::string_view after) {
  bool follows_letter = false;
  while (!before.empty() && !follows_letter) {
    const CodePoint point = LastCodePoint(before);
    if (!IsCaseIgnorable(point.value)) {
      if (!IsCased(point.value)) return false;
      follows_letter = true;
    }
    before.remove_suffix(point.length);
  }
  if (!follows_letter) return false;
  while (!after.empty()) {
    const CodePoint point = FirstCodePoint(after);
    if (!IsCaseIgnorable(point.value)) return !IsCased(point.value);
    after.remove_prefix(point.length);
  }
  return true;
}

constexpr uint32_t kSigma = 0x3a3;
constexpr uint32_t kFinalSigma = 0x3c2;
constexpr uint32_t kDottedI = 0x130;

void AppendLower(std::string& out, std::string_view text, size_t at, CodePoint point) {
  if (point.value < 0x80) {
    out += static_cast<char>(point.value >= 'A' && point.value <= 'Z' ? point.value + 32
                                                                      : point.value);
  } else if (point.value == kNotUtf8) {
    out += text[at];
  } else if (point.value == kDottedI) {
    out += "i\u0307";
  } else if (point.value == kSigma &&
             IsFinalSigma(text.substr(0, at), text.substr(at + point.length))) {
    AppendCodePoint(out, kFinalSigma);
  } else {
    AppendCodePoint(out, Simple(point.value, utf8proc_tolower));
  }
}

void AppendUpper(std::string& out, std::string_view text, size_t at, CodePoint point) {
  if (point.value < 0x80) {
    out += static_cast<char>(point.value >= 'a' && point.value <= 'z' ? point.value - 32
                                                                      : point.value);
  } else if (point.value == kNotUtf8) {
    out += text[at];
  } else if (const Expansion* expansion = FindExpansion(point.value)) {
    out += expansion->upper;
  } else {
    AppendCodePoint(out, Simple(point.value, utf8proc_toupper));
  }
}

void AppendTitle(std::string& out, std::string_view text, size_t at, CodePoint point) {
  if (point.value < 0x80 || point.value == kNotUtf8) {
    AppendUpper(out, text, at, point);
  } else if (const Expansion* expansion = FindExpansion(point.value)) {
    out += expansion->title;
  } else {
    AppendCodePoint(out, Simple(point.value, utf8proc_totitle));
  }
}

}  // namespace

bool IsSpace(uint32_t value) {
  if (value < 0x80)
    return value == ' ' || (value >= 9 && value <= 13) || (value >= 28 && value <= 31);
  if (value == 0x85) return true;
  const utf8proc_category_t category = Category(value);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

bool IsLetter(uint32_t value) {
  const utf8proc_category_t category = Category(value);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool IsDigit(uint32_t value) {
  if (value < 0x80) return value >= '0' && value <= '9';
  if (Category(value) == UTF8PROC_CATEGORY_ND) return true;
  return std::ranges::any_of(kOtherDigits, [value](const auto& range) {
    return value >= range.first && value <= range.last;
  });
}

bool IsNumeric(uint32_t value) {
  const utf8proc_category_t category = Category(value);
  return IsDigit(value) || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool IsUpper(uint32_t value) {
  if (value < 0x80) return value >= 'A' && value <= 'Z';
  return value <= kMaxCodePoint && utf8proc_isupper(static_cast<utf8proc_int32_t>(value)) != 0;
}

bool IsLower(uint32_t value) {
  if (value < 0x80) return value >= 'a' && value <= 'z';
  return value <= kMaxCodePoint && utf8proc_islower(static_cast<utf8proc_int32_t>(value)) != 0;
}

bool IsCased(uint32_t value) {
  return IsUpper(value) || IsLower(value) || Category(value) == UTF8PROC_CATEGORY_LT;
}

bool IsPrintable(uint32_t value) {
  if (value < 0x80) return value >= 0x20 && value < 0x7f;
  const utf8proc_category_t category = Category(value);
  return category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS;
}

std::string ToLower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = FirstCodePoint(text.substr(at));
    AppendLower(out, text, at, point);
    at += point.length;
  }
  return out;
}

std::string ToUpper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = FirstCodePoint(text.substr(at));
    AppendUpper(out, text, at, point);
    at += point.length;
  }
  return out;
}

std::string ToTitle(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = FirstCodePoint(text.substr(at));
    inside ? AppendLower(out, text, at, point) : AppendTitle(out, text, at, point);
    inside = IsCased(point.value);
    at += point.length;
  }
  return out;
}

std::string ToCapitalized(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = FirstCodePoint(text.substr(at));
    at == 0 ? AppendTitle(out, text, at, point) : AppendLower(out, text, at, point);
    at += point.length;
  }
  return out;
}

std::string ToSwappedCase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = FirstCodePoint(text.substr(at));
    IsUpper(point.value) ? AppendLower(out, text, at, point) : AppendUpper(out, text, at, point);
    at += point.length;
  }
  return out;
}

}  // namespace fathom
