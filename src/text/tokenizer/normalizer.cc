#include "text/tokenizer/normalizer.h"

#include <algorithm>
#include <utility>

#include "text/tokenizer/part_json.h"
#include "text/unicode/code_point_class.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

size_t SpaceAtStart(std::string_view text) {
  const CodePointClasses& classes = CodePointClasses::Table();
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint next = FirstCodePoint(text.substr(at));
    if ((classes[next.value] & kSpace) == 0) break;
    at += next.length;
  }
  return at;
}

size_t EndWithoutSpace(std::string_view text) {
  const CodePointClasses& classes = CodePointClasses::Table();
  for (size_t end = text.size(); end > 0;) {
    size_t at = end - 1;
    while (at > 0 && end - at < 4 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) --at;
    const CodePoint last = FirstCodePoint(text.substr(at, end - at));
    if (at + last.length != end || (classes[last.value] & kSpace) == 0) return end;
    end = at;
  }
  return 0;
}

}  // namespace

struct Normalizer::Applied {
  std::string text;
  size_t limit;

  Result<void> operator()(NormalForm form) {
    if (!IsPlainlyNormal(form, text)) text = Normalized(form, text);
    return {};
  }

  Result<void> operator()(const Replace& replace) {
    std::vector<TextSpan> matches;
    TRY_VOID(replace.pattern.FindAll(text, matches));
    if (matches.empty()) return {};
    if (matches.size() * replace.by.size() > limit) {
      return Fail(Blame::kCaller, "the normalizer makes a text of {} bytes too long", text.size());
    }
    std::string out;
    size_t done = 0;
    for (const TextSpan& match : matches) {
      out.append(text, done, match.begin - done).append(replace.by);
      done = match.end;
    }
    text = std::move(out.append(text, done));
    return {};
  }

  Result<void> operator()(const Prepend& prepend) {
    if (!text.empty()) text.insert(0, prepend.text);
    return {};
  }

  Result<void> operator()(Lowercase) {
    text = Lowercased(text);
    return {};
  }

  Result<void> operator()(Strip strip) {
    if (strip.right) text.resize(EndWithoutSpace(text));
    if (strip.left) text.erase(0, SpaceAtStart(text));
    return {};
  }
};

Result<Normalizer::Step> Normalizer::ParseStep(const Json& json) {
  TRY(const std::string type, PartType(json));
  if (type == "NFC") return NormalForm::kNfc;
  if (type == "NFD") return NormalForm::kNfd;
  if (type == "NFKC") return NormalForm::kNfkc;
  if (type == "NFKD") return NormalForm::kNfkd;
  if (type == "Lowercase") return Lowercase{};
  if (type == "Prepend") {
    TRY(std::string text, PartText(json, "prepend"));
    return Prepend{std::move(text)};
  }
  if (type == "Strip") {
    TRY(const bool left, PartFlag(json, "strip_left", true));
    TRY(const bool right, PartFlag(json, "strip_right", true));
    return Strip{left, right};
  }
  if (type == "Replace") {
    TRY(const Json* source, PartMember(json, "pattern"));
    TRY(TextPattern pattern, TextPattern::Parse(*source));
    TRY(std::string by, PartText(json, "content"));
    return Replace{std::move(pattern), std::move(by)};
  }
  return Fail(Blame::kCaller, "not supported: normalizer {}", type);
}

Result<Normalizer> Normalizer::Parse(const Json& json) {
  std::vector<const Json*> parts;
  TRY_VOID(FlattenParts(json, "normalizers", parts));
  Normalizer normalizer;
  for (const Json* part : parts) {
    TRY(Step step, ParseStep(*part));
    normalizer.steps_.push_back(std::move(step));
  }
  return normalizer;
}

bool Normalizer::keeps_lines_apart() const {
  return std::ranges::all_of(steps_, [](const Step& step) {
    if (std::holds_alternative<NormalForm>(step)) return true;
    if (std::holds_alternative<Lowercase>(step)) return true;
    // One character is found wherever it stands. It must not be what lines are cut at.
    const auto* replace = std::get_if<Replace>(&step);
    const std::string* text = replace == nullptr ? nullptr : replace->pattern.text();
    return text != nullptr && *text == " ";
  });
}

bool Normalizer::Keeps(std::string_view text) const {
  if (steps_.empty() || text.empty()) return true;
  const auto* form = std::get_if<NormalForm>(&steps_[0]);
  return steps_.size() == 1 && form != nullptr && IsPlainlyNormal(*form, text);
}

Result<std::string> Normalizer::Apply(std::string_view text) const {
  Applied applied{std::string(text), kMaxGrowth * (text.size() + 64)};
  for (const Step& step : steps_) TRY_VOID(std::visit(applied, step));
  if (applied.text.size() > applied.limit) {
    return Fail(Blame::kCaller, "the normalizer makes a text of {} bytes too long", text.size());
  }
  return std::move(applied.text);
}

}  // namespace fathom
