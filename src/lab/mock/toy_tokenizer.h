// Which tokens is a text made of, for an engine that has no model?
//
// A text is cut into pieces, and a piece is its own id: there is no vocabulary to load, any bytes
// come back as they were, and every process gives the same ids. About 3.5 characters of English
// make a token.
//
//   pieces   A special token (below), or up to four ASCII characters, or one other character, or a
//            byte that is not UTF-8. A space or a line feed always begins a piece: " hello" is
//            " hel" and "lo".
//   ids      0..255        a byte
//            256..511      special tokens: <|system|> <|developer|> <|user|> <|assistant|> <|tool|>
//                          <|end|>, in this order
//            512..         two bytes, big-endian
//            66048..       three bytes
//            16843264..    four ASCII characters of seven bits
//            285278720..   a character of four UTF-8 bytes, by its code point
//
// Prefixes  What an engine generated, as text, gives the same tokens again: a text cut off at the
//           end of a token has the same tokens up to there. ToyTokens(a + b) is ToyTokens(a) and
//           then ToyTokens(b) whenever b begins with a space, a line feed or a special token.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/mock/kv_event.h"

namespace fathom {

std::vector<TokenId> ToyTokens(std::string_view text);
void AppendToyTokens(std::vector<TokenId>& out, std::string_view text);

// Ids that stand for nothing become U+FFFD.
std::string ToyText(std::span<const TokenId> tokens);
void AppendToyText(std::string& out, TokenId token);

}  // namespace fathom
