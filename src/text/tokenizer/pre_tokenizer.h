// Into which words does the model's pre-tokenizer cut a text? Merges never cross words.
//
// Errors   Parse(): kCaller. Cut(): kCaller, when an expression gives up.
// Threads  Immutable; each thread brings its own room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "text/tokenizer/text_pattern.h"
#include "text/tokenizer/word_splitter.h"

namespace fathom {

struct Word {
  std::string_view text;
  bool first;  // it begins the prompt
};

// Where words are kept while a text is cut.
struct WordRoom {
  std::vector<Word> words;
  std::vector<Word> next;
  std::vector<TextSpan> matches;
  std::deque<std::string> texts;  // those that are not part of the text that was given
};

class PreTokenizer {
 public:
  static Result<PreTokenizer> Parse(const Json& json);

  // The model sees bytes, not characters.
  bool byte_level() const { return byte_level_; }
  // It is this pattern and nothing else.
  std::optional<WordPattern> pattern() const;
  // It cuts nothing.
  bool is_identity() const { return steps_.empty(); }
  // It cuts at spaces, or nowhere.
  bool knows_only_spaces() const;

  // Leaves the words in room.words; they live as long as `text` and the room's texts do.
  Result<void> Cut(std::string_view text, bool first, WordRoom& room) const;

 private:
  enum class Behavior : uint8_t {
    kRemoved,
    kIsolated,
    kMergedWithPrevious,
    kMergedWithNext,
    kContiguous
  };
  struct Split {
    TextPattern pattern;
    Behavior behavior;
    bool invert;
  };
  enum class Prepend : uint8_t { kNever, kFirst, kAlways };
  // Writes spaces as another character, and may put one in front.
  struct Metaspace {
    std::string space;
    Prepend prepend;
  };
  using Step = std::variant<Split, WordPattern, Metaspace>;
  struct Part;
  struct Cutter;

  static Result<Behavior> ParseBehavior(const Json& json, std::string_view otherwise);
  static Result<Split> ParseSplit(const Json& json);
  Result<void> AddStep(const Json& json);
  Result<void> AddByteLevel(const Json& json);
  Result<void> AddMetaspace(const Json& json);
  void AddSet(CharacterSet set, Behavior behavior);
  void FindPatterns();

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

}  // namespace fathom
