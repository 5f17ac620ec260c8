// Whatever file comes is read or refused. What was read splits without gaps, encodes, and has a
// text for each of its tokens.
#include <string>
#include <vector>

#include "base/check.h"
#include "text/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  // A copy of its own, so that reading past the end is seen.
  const std::vector<char> copy(data, data + size);
  const auto tokenizer = Tokenizer::Parse({copy.data(), copy.size()});
  if (!tokenizer) {
    CHECK(!tokenizer.error().what.empty());
    return 0;
  }
  constexpr std::string_view kText =
      " Hello, w\u00f6rld's ab  abc\n\n12 \u4e2d\u6587e\u0301 <s>[x]\xff\n\taab";
  std::vector<TextPiece> pieces;
  (*tokenizer)->Split(kText, pieces);
  std::string all;
  for (const TextPiece& piece : pieces) all += piece.text;
  CHECK(all == kText);
  Encoder encoder(**tokenizer);
  const auto ids = encoder.Encode(kText, true);
  if (!ids) return 0;
  CHECK(*encoder.Encode(kText, true) == *ids);
  for (const TokenId id : *ids) (*tokenizer)->Piece(id);
  (*tokenizer)->Decode(*ids);
  return 0;
}
