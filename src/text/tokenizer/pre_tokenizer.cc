#include "text/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "text/tokenizer/part_json.h"
#include "text/unicode/utf8.h"

namespace fathom {

// A stretch of a word: a match, or what lies between two of them.
struct PreTokenizer::Part {
  TextSpan span;
  bool match;
};

// Cuts one word by one step.
struct PreTokenizer::Cutter {
  const Word& word;
  WordRoom& room;

  void Add(TextSpan span) const {
    if (span.begin == span.end) return;
    room.next.push_back(
        {word.text.substr(span.begin, span.end - span.begin), word.first && span.begin == 0});
  }

  std::vector<Part> PartsOf(const Split& split) const {
    std::vector<Part> parts;
    size_t done = 0;
    for (const TextSpan& match : room.matches) {
      if (match.begin != done) parts.push_back({{done, match.begin}, split.invert});
      parts.push_back({match, !split.invert});
      done = match.end;
    }
    if (done != word.text.size()) parts.push_back({{done, word.text.size()}, split.invert});
    return parts;
  }

  // Puts each match and its neighbour together: the part before it, or, going backwards, behind.
  static void JoinMatches(std::vector<Part>& parts) {
    std::vector<Part> joined;
    bool after_match = false;
    for (const Part& part : parts) {
      if (part.match && !after_match && !joined.empty()) {
        TextSpan& last = joined.back().span;
        last = {std::min(last.begin, part.span.begin), std::max(last.end, part.span.end)};
      } else {
        joined.push_back(part);
      }
      after_match = part.match;
    }
    parts = std::move(joined);
  }

  static void JoinAlike(std::vector<Part>& parts) {
    std::vector<Part> joined;
    for (const Part& part : parts) {
      if (!joined.empty() && joined.back().match == part.match) {
        joined.back().span.end = part.span.end;
      } else {
        joined.push_back(part);
      }
    }
    parts = std::move(joined);
  }

  Result<void> operator()(const Split& split) const {
    room.matches.clear();
    TRY_VOID(split.pattern.FindAll(word.text, room.matches));
    std::vector<Part> parts = PartsOf(split);
    if (split.behavior == Behavior::kMergedWithPrevious) JoinMatches(parts);
    if (split.behavior == Behavior::kContiguous) JoinAlike(parts);
    if (split.behavior == Behavior::kMergedWithNext) {
      std::ranges::reverse(parts);
      JoinMatches(parts);
      std::ranges::reverse(parts);
    }
    for (const Part& part : parts) {
      if (split.behavior != Behavior::kRemoved || !part.match) Add(part.span);
    }
    return {};
  }

  Result<void> operator()(WordPattern pattern) const {
    WordSplitter splitter(pattern, word.text);
    for (size_t at = 0; at < word.text.size();) {
      const size_t end = splitter.EndOfWord(at);
      Add({at, end});
      at = end;
    }
    return {};
  }

  Result<void> operator()(const Metaspace& meta) const {
    std::string out;
    for (const char c : word.text) c == ' ' ? out += meta.space : out += c;
    const bool wanted =
        meta.prepend == Prepend::kAlways || (meta.prepend == Prepend::kFirst && word.first);
    if (wanted && !out.starts_with(meta.space)) out.insert(0, meta.space);
    room.next.push_back({room.texts.emplace_back(std::move(out)), word.first});
    return {};
  }
};

Result<PreTokenizer::Behavior> PreTokenizer::ParseBehavior(const Json& json,
                                                           std::string_view otherwise) {
  constexpr std::array<std::string_view, 5> kNames = {"Removed", "Isolated", "MergedWithPrevious",
                                                      "MergedWithNext", "Contiguous"};
  std::string name(otherwise);
  if (json.Find("behavior") != nullptr) {
    TRY(name, PartText(json, "behavior"));
  }
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return Fail(Blame::kCaller, "not supported: behavior {}", name);
  return static_cast<Behavior>(found - kNames.begin());
}

Result<PreTokenizer::Split> PreTokenizer::ParseSplit(const Json& json) {
  TRY(const Json* source, PartMember(json, "pattern"));
  TRY(TextPattern pattern, TextPattern::Parse(*source));
  TRY(const Behavior behavior, ParseBehavior(json, "Isolated"));
  TRY(const bool invert, PartFlag(json, "invert", false));
  return Split{std::move(pattern), behavior, invert};
}

Result<void> PreTokenizer::AddByteLevel(const Json& json) {
  TRY(const bool prefix, PartFlag(json, "add_prefix_space", true));
  TRY(const bool words, PartFlag(json, "use_regex", true));
  if (prefix) steps_.push_back(Metaspace{" ", Prepend::kAlways});
  if (words) steps_.push_back(WordPattern::kGpt2);
  byte_level_ = true;
  return {};
}

Result<void> PreTokenizer::AddMetaspace(const Json& json) {
  TRY(const std::string space, PartText(json, "replacement"));
  const bool one = !space.empty() && FirstCodePoint(space).length == space.size();
  if (!one) return Fail(Blame::kCaller, "'replacement' is not one character");
  TRY(const bool prefix, PartFlag(json, "add_prefix_space", true));
  TRY(const bool split, PartFlag(json, "split", true));
  std::string scheme = prefix ? "always" : "never";
  if (const Json* given = json.Find("prepend_scheme"); given != nullptr && !given->is_null()) {
    TRY(scheme, PartText(json, "prepend_scheme"));
  }
  const bool known = scheme == "always" || scheme == "never" || scheme == "first";
  if (!known) return Fail(Blame::kCaller, "not supported: prepend_scheme {}", scheme);
  steps_.push_back(Metaspace{space, scheme == "always"  ? Prepend::kAlways
                                    : scheme == "first" ? Prepend::kFirst
                                                        : Prepend::kNever});
  if (split) AddSet({.character = FirstCodePoint(space).value}, Behavior::kMergedWithNext);
  return {};
}

void PreTokenizer::AddSet(CharacterSet set, Behavior behavior) {
  steps_.push_back(Split{TextPattern(set), behavior, false});
}

Result<void> PreTokenizer::AddStep(const Json& json) {
  TRY(const std::string type, PartType(json));
  if (byte_level_)
    return Fail(Blame::kCaller, "not supported: pre_tokenizer {} behind ByteLevel", type);
  if (type == "ByteLevel") return AddByteLevel(json);
  if (type == "Metaspace") return AddMetaspace(json);
  if (type == "Split") {
    TRY(Split split, ParseSplit(json));
    steps_.push_back(std::move(split));
  } else if (type == "Digits") {
    TRY(const bool alone, PartFlag(json, "individual_digits", false));
    AddSet({.any = kNumber}, alone ? Behavior::kIsolated : Behavior::kContiguous);
  } else if (type == "Punctuation") {
    TRY(const Behavior behavior, ParseBehavior(json, "Isolated"));
    AddSet({.any = kPunctuation, .ascii_signs = true}, behavior);
  } else if (type == "WhitespaceSplit") {
    AddSet({.any = kSpace}, Behavior::kRemoved);
  } else if (type == "BertPreTokenizer") {
    AddSet({.any = kSpace}, Behavior::kRemoved);
    AddSet({.any = kPunctuation, .ascii_signs = true}, Behavior::kIsolated);
  } else if (type == "Whitespace") {
    steps_.push_back(Split{TextPattern(WordRuns{}), Behavior::kRemoved, true});
  } else if (type == "CharDelimiterSplit") {
    TRY(const std::string delimiter, PartText(json, "delimiter"));
    if (delimiter.empty()) return Fail(Blame::kCaller, "'delimiter' is empty");
    AddSet({.character = FirstCodePoint(delimiter).value}, Behavior::kRemoved);
  } else {
    return Fail(Blame::kCaller, "not supported: pre_tokenizer {}", type);
  }
  return {};
}

Result<PreTokenizer> PreTokenizer::Parse(const Json& json) {
  std::vector<const Json*> parts;
  TRY_VOID(FlattenParts(json, "pretokenizers", parts));
  PreTokenizer pre;
  for (const Json* part : parts) TRY_VOID(pre.AddStep(*part));
  pre.FindPatterns();
  return pre;
}

// Puts the hand-made splitters in the place of the expressions that they know.
void PreTokenizer::FindPatterns() {
  std::vector<std::string_view> expressions;
  for (const Step& step : steps_) {
    const auto* split = std::get_if<Split>(&step);
    const bool plain = split != nullptr && split->behavior == Behavior::kIsolated && !split->invert;
    if (!plain || split->pattern.source().empty()) break;
    expressions.push_back(split->pattern.source());
  }
  const std::optional<WordPattern> pattern = WordPatternOf(expressions);
  if (!pattern) return;
  steps_.erase(steps_.begin(), steps_.begin() + static_cast<ptrdiff_t>(expressions.size()));
  steps_.insert(steps_.begin(), *pattern);
}

std::optional<WordPattern> PreTokenizer::pattern() const {
  if (steps_.size() != 1) return std::nullopt;
  const auto* pattern = std::get_if<WordPattern>(&steps_[0]);
  return pattern == nullptr ? std::nullopt : std::optional(*pattern);
}

bool PreTokenizer::knows_only_spaces() const {
  return std::ranges::all_of(steps_, [](const Step& step) {
    const auto* split = std::get_if<Split>(&step);
    const std::string* text = split == nullptr ? nullptr : split->pattern.text();
    return text != nullptr && *text == " ";
  });
}

Result<void> PreTokenizer::Cut(std::string_view text, bool first, WordRoom& room) const {
  room.texts.clear();
  room.words.assign(1, {text, first});
  for (const Step& step : steps_) {
    room.next.clear();
    for (const Word& word : room.words) TRY_VOID(std::visit(Cutter{word, room}, step));
    room.words.swap(room.next);
  }
  return {};
}

}  // namespace fathom
