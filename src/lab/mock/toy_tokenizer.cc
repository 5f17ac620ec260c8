#include "lab/mock/toy_tokenizer.h"

#include <algorithm>
#include <array>

namespace fathom {
namespace {

constexpr TokenId kSpecial = 256;
constexpr TokenId kPair = 512;
constexpr TokenId kTriple = kPair + (1u << 16);
constexpr TokenId kQuad = kTriple + (1u << 24);
constexpr TokenId kCharacter = kQuad + (1u << 28);
constexpr TokenId kFirstLong = 0x10000;  // code points that take four bytes
constexpr TokenId kEnd = kCharacter + 0x110000;

constexpr std::array<std::string_view, 6> kSpecials = {"<|system|>",    "<|developer|>", "<|user|>",
                                                       "<|assistant|>", "<|tool|>",      "<|end|>"};
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

bool BeginsPiece(char c) { return c == ' ' || c == '\n'; }

// The index of the special token that the text begins with, or their number.
size_t SpecialAt(std::string_view text) {
  const auto found = std::ranges::find_if(
      kSpecials, [&](std::string_view special) { return text.starts_with(special); });
  return static_cast<size_t>(found - kSpecials.begin());
}

// The bytes of the UTF-8 character that the text begins with; 1 if it begins with none.
size_t CharacterSize(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t size = lead >= 0xF0   ? (lead <= 0xF4 ? 4 : 1)
                      : lead >= 0xE0 ? 3
                      : lead >= 0xC2 ? 2
                                     : 1;
  if (text.size() < size) return 1;
  for (size_t i = 1; i < size; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 1;
  }
  return size;
}

size_t AsciiPieceSize(std::string_view text) {
  size_t size = 1;
  while (size < 4 && size < text.size() && IsAscii(text[size]) && !BeginsPiece(text[size])) ++size;
  return size;
}

TokenId Packed(std::string_view bytes, unsigned bits) {
  TokenId packed = 0;
  for (const char c : bytes) {
    packed = (packed << bits) | (static_cast<unsigned char>(c) & ((1u << bits) - 1));
  }
  return packed;
}

TokenId CodePoint(std::string_view c) {
  return ((Packed(c.substr(0, 1), 8) & 0x07) << 18) | Packed(c.substr(1), 6);
}

TokenId IdOf(std::string_view piece) {
  switch (piece.size()) {
    case 1:
      return Packed(piece, 8);
    case 2:
      return kPair + Packed(piece, 8);
    case 3:
      return kTriple + Packed(piece, 8);
    default:
      return IsAscii(piece[0]) ? kQuad + Packed(piece, 7) : kCharacter + CodePoint(piece);
  }
}

// Text without special tokens.
void AppendPieces(std::vector<TokenId>& out, std::string_view text) {
  while (!text.empty()) {
    size_t size = IsAscii(text[0]) ? AsciiPieceSize(text) : CharacterSize(text);
    if (size == 4 && !IsAscii(text[0])) {
      const TokenId point = CodePoint(text.substr(0, 4));
      if (point < kFirstLong || point >= 0x110000) size = 1;  // not how it is written
    }
    out.push_back(IdOf(text.substr(0, size)));
    text.remove_prefix(size);
  }
}

void AppendUnpacked(std::string& out, TokenId packed, unsigned bytes, unsigned bits) {
  for (unsigned i = bytes; i-- > 0;) {
    out += static_cast<char>((packed >> (i * bits)) & ((1u << bits) - 1));
  }
}

void AppendCharacter(std::string& out, TokenId point) {
  out += static_cast<char>(0xF0 | (point >> 18));
  for (const unsigned shift : {12u, 6u, 0u}) {
    out += static_cast<char>(0x80 | ((point >> shift) & 0x3F));
  }
}

}  // namespace

void AppendToyTokens(std::vector<TokenId>& out, std::string_view text) {
  out.reserve(out.size() + text.size() / 3);
  size_t begin = 0;
  for (size_t at = text.find("<|"); at != text.npos; at = text.find("<|", at)) {
    const size_t special = SpecialAt(text.substr(at));
    if (special == kSpecials.size()) {
      at += 1;
      continue;
    }
    AppendPieces(out, text.substr(begin, at - begin));
    out.push_back(kSpecial + static_cast<TokenId>(special));
    at += kSpecials[special].size();
    begin = at;
  }
  AppendPieces(out, text.substr(begin));
}

std::vector<TokenId> ToyTokens(std::string_view text) {
  std::vector<TokenId> tokens;
  AppendToyTokens(tokens, text);
  return tokens;
}

void AppendToyText(std::string& out, TokenId token) {
  if (token < kSpecial) {
    out += static_cast<char>(token);
  } else if (token < kPair) {
    const size_t special = token - kSpecial;
    out += special < kSpecials.size() ? kSpecials[special] : kReplacement;
  } else if (token < kTriple) {
    AppendUnpacked(out, token - kPair, 2, 8);
  } else if (token < kQuad) {
    AppendUnpacked(out, token - kTriple, 3, 8);
  } else if (token < kCharacter) {
    AppendUnpacked(out, token - kQuad, 4, 7);
  } else if (token >= kCharacter + kFirstLong && token < kEnd) {
    AppendCharacter(out, token - kCharacter);
  } else {
    out += kReplacement;
  }
}

std::string ToyText(std::span<const TokenId> tokens) {
  std::string text;
  text.reserve(tokens.size() * 4);
  for (const TokenId token : tokens) AppendToyText(text, token);
  return text;
}

}  // namespace fathom
