// A prompt's text, cut where its tokens cannot depend on what comes next, and the tokens of the
// parts that have been met before. Only the others have to be encoded.
//
//   PromptParts parts(source, text, ...);      cuts and looks up
//   if (parts.missing_bytes() < ...) ...        what Complete() has to do
//   parts.Complete(encoder);                    encodes the rest, and keeps it for the next prompt
//   parts.AppendTo(tokens);
//
// Added tokens ("<|im_start|>") are such places; and in long texts between them, ends of lines, so
// that a document that grows is not encoded anew from its beginning either.
//
// Threads  One at a time. Not the thread that made it has to complete it.
// Memory   The text, and a few words per part.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/model/token_cache.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokens/text_key.h"

namespace fathom {

// What prompts of one model share.
struct PartsSource {
  const Tokenizer& tokenizer;
  TokenCache& cache;
  TextKey model;        // whose tokens these are: the same text has others in another vocabulary
  uint64_t secret = 0;  // of the names
};

struct PromptText {
  std::string text;
  bool whole = true;           // false: more follows, which is not known
  bool add_special = false;    // what the post-processor puts around a prompt belongs to it
  bool literal_marks = false;  // it has kLiteralMark in places where no token may be found
};

// Stands inside what looks like an added token and shall not become one. A noncharacter: no text
// has a use for it. What texts themselves have of it is marked, too.
constexpr std::string_view kLiteralMark = "\xef\xb7\x90";  // U+FDD0

std::string WithoutLiteralMarks(std::string_view text);

class PromptParts {
 public:
  // Shorter texts are encoded faster than they are looked up.
  static constexpr size_t kLeastKept = 32;
  // From here on a text is cut at the next end of a line.
  static constexpr size_t kLongPart = 4096;

  PromptParts(const PartsSource& source, PromptText prompt);
  PromptParts(const PromptParts&) = delete;
  PromptParts& operator=(const PromptParts&) = delete;

  size_t missing_bytes() const { return missing_bytes_; }
  const std::string& text() const { return prompt_.text; }

  // On an error the parts before the one that failed are complete.
  Result<void> Complete(Encoder& encoder);

  // The tokens of the parts up to the first that is not known.
  void AppendTo(std::vector<TokenId>& tokens) const;

  // The prompt up to a cut: what it is called, and how many tokens it has. Not every cut has one:
  // they are kPlaceDistance tokens apart at least.
  static constexpr size_t kPlaceDistance = 64;
  struct Place {
    TextKey key;
    size_t tokens;
  };
  // Of the parts up to the first that is not known.
  std::vector<Place> Places() const;

 private:
  struct Part {
    std::string_view text;
    TokenId token = TextPiece::kText;
    bool first = false;  // it begins the prompt
    TextKey key;         // of the text; of a token its id
    SharedTokens known;

    bool is_token() const { return token != TextPiece::kText; }
  };

  void Cut();
  void CutText(std::string_view text);
  std::string_view Unmarked(std::string_view text);
  void DropUncertainEnd();
  void AddToken(TokenId token);
  void AddText(std::string_view text);
  TextKey CacheKey(const Part& part) const;
  static Result<void> Encode(Part& part, Encoder& encoder);

  const PartsSource source_;
  const PromptText prompt_;
  std::deque<std::string> unmarked_;  // what parts point to where marks were taken out
  std::vector<Part> parts_;
  bool at_start_ = true;  // nothing of the text has been cut yet
  size_t missing_bytes_ = 0;
};

}  // namespace fathom
