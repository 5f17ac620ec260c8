#include "text/unicode/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "text/unicode/code_point_class.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

size_t AsciiAtStart(std::string_view text) {
  size_t at = 0;
  for (uint64_t eight = 0; text.size() - at >= sizeof(eight); at += sizeof(eight)) {
    std::memcpy(&eight, text.data() + at, sizeof(eight));
    if ((eight & 0x8080808080808080) != 0) break;
  }
  while (at < text.size() && static_cast<uint8_t>(text[at]) < 0x80) ++at;
  return at;
}

utf8proc_option_t OptionsOf(NormalForm form) {
  const bool composed = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  return static_cast<utf8proc_option_t>(UTF8PROC_STABLE |
                                        (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                                        (compatible ? UTF8PROC_COMPAT : 0));
}

int ClassOf(int32_t code_point) { return utf8proc_get_property(code_point)->combining_class; }

// Marks of one run in canonical order, equal ones as they came. The library's own way of doing this
// takes quadratic time when somebody sends a hundred thousand marks in a row.
void OrderRun(std::span<int32_t> run) {
  if (std::ranges::is_sorted(run, {}, ClassOf)) return;
  std::vector<std::tuple<int, size_t, int32_t>> marks;
  for (size_t i = 0; i < run.size(); ++i) marks.emplace_back(ClassOf(run[i]), i, run[i]);
  std::ranges::sort(marks);
  std::ranges::transform(marks, run.begin(), [](const auto& mark) { return std::get<2>(mark); });
}

void OrderMarks(std::vector<int32_t>& code_points) {
  const auto is_mark = [](int32_t c) { return ClassOf(c) != 0; };
  auto from = std::ranges::find_if(code_points, is_mark);
  while (from != code_points.end()) {
    const auto to = std::find_if_not(from, code_points.end(), is_mark);
    OrderRun({from, to});
    from = std::find_if(to, code_points.end(), is_mark);
  }
}

void AppendNormalized(std::string& out, utf8proc_option_t options, std::string_view utf8) {
  constexpr size_t kLongestDecomposition = 18;
  std::vector<int32_t> code_points;
  code_points.reserve(utf8.size());
  while (!utf8.empty()) {
    const CodePoint next = FirstCodePoint(utf8);
    utf8.remove_prefix(next.length);
    int32_t parts[kLongestDecomposition];
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<int32_t>(next.value), parts,
                                               kLongestDecomposition, options, &boundary);
    CHECK(count >= 0 && count <= static_cast<ptrdiff_t>(kLongestDecomposition));
    code_points.insert(code_points.end(), parts, parts + count);
  }
  OrderMarks(code_points);
  const auto length = utf8proc_normalize_utf32(code_points.data(),
                                               static_cast<ptrdiff_t>(code_points.size()), options);
  for (ptrdiff_t i = 0; i < length; ++i) {
    AppendCodePoint(out, static_cast<uint32_t>(code_points[static_cast<size_t>(i)]));
  }
}

// What NFC may change in a text, and all that can have a part in it: from an inert code point up to
// the next one behind the trouble. Both are text.size(): nothing.
struct Stretch {
  size_t begin;
  size_t end;
};

size_t NextInert(std::string_view text, size_t at) {
  const CodePointClasses& classes = CodePointClasses::Table();
  while (at < text.size()) {
    const CodePoint next = FirstCodePoint(text.substr(at));
    if (next.value == kNotUtf8 || (classes[next.value] & kInertInNfc) != 0) break;
    at += next.length;
  }
  return at;
}

Stretch NextUnsteady(std::string_view text, size_t at) {
  const CodePointClasses& classes = CodePointClasses::Table();
  size_t begin = at;
  int last_class = 0;
  while (at < text.size()) {
    if (const size_t ascii = AsciiAtStart(text.substr(at)); ascii != 0) {
      begin = at + ascii - 1;
      at += ascii;
      last_class = 0;
      continue;
    }
    const CodePoint next = FirstCodePoint(text.substr(at));
    const CodePointClass bits = next.value == kNotUtf8 ? kInertInNfc : classes[next.value];
    if ((bits & kInertInNfc) != 0) {
      begin = at;
      last_class = 0;
    } else {
      const int this_class = ClassOf(static_cast<int32_t>(next.value));
      const bool in_order = this_class == 0 || this_class >= last_class;
      if ((bits & kSteadyInNfc) == 0 || !in_order) return {begin, NextInert(text, at)};
      last_class = this_class;
    }
    at += next.length;
  }
  return {text.size(), text.size()};
}

// Parted by bytes that are not UTF-8.
void AppendParts(std::string& out, NormalForm form, std::string_view text) {
  const utf8proc_option_t options = OptionsOf(form);
  while (!text.empty()) {
    const size_t good = std::min(FindNotUtf8(text), text.size());
    AppendNormalized(out, options, text.substr(0, good));
    if (good < text.size()) out += text[good];
    text.remove_prefix(std::min(good + 1, text.size()));
  }
}

}  // namespace

bool IsPlainlyNormal(NormalForm form, std::string_view text) {
  if (form != NormalForm::kNfc) return AsciiAtStart(text) == text.size();
  return NextUnsteady(text, 0).begin == text.size();
}

std::string Normalized(NormalForm form, std::string_view text) {
  std::string out;
  out.reserve(text.size());
  if (form != NormalForm::kNfc) {
    AppendParts(out, form, text);
    return out;
  }
  for (size_t at = 0; at < text.size();) {
    const Stretch stretch = NextUnsteady(text, at);
    out.append(text, at, stretch.begin - at);
    AppendParts(out, form, text.substr(stretch.begin, stretch.end - stretch.begin));
    at = stretch.end;
  }
  return out;
}

std::string Lowercased(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint next = FirstCodePoint(text);
    if (next.value == kNotUtf8) {
      out += text[0];
    } else if (next.value == 0x130) {
      out += "i\u0307";  // the only one that becomes two
    } else {
      AppendCodePoint(out,
                      static_cast<uint32_t>(utf8proc_tolower(static_cast<int32_t>(next.value))));
    }
    text.remove_prefix(next.length);
  }
  return out;
}

}  // namespace fathom
