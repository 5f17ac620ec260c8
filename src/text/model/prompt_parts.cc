#include "text/model/prompt_parts.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace fathom {

PromptParts::PromptParts(const PartsSource& source, PromptText prompt)
    : source_(source), prompt_(std::move(prompt)) {
  if (prompt_.add_special) {
    for (const TokenId token : source_.tokenizer.prefix()) AddToken(token);
  }
  Cut();
  if (!prompt_.whole) DropUncertainEnd();
  if (prompt_.add_special && prompt_.whole) {
    for (const TokenId token : source_.tokenizer.suffix()) AddToken(token);
  }
}

// What follows may belong to the same word as what is last here, or make a longer token of it.
void PromptParts::DropUncertainEnd() {
  const auto begins_another = [&](TokenId token) {
    const std::string piece = source_.tokenizer.Piece(token);
    return std::ranges::any_of(source_.tokenizer.added_tokens(), [&](const AddedToken& other) {
      return other.id != token && other.content.starts_with(piece);
    });
  };
  if (!parts_.empty() && !parts_.back().is_token()) {
    missing_bytes_ -= parts_.back().known ? 0 : parts_.back().text.size();
    parts_.pop_back();
  }
  while (!parts_.empty() && parts_.back().is_token() && begins_another(parts_.back().token)) {
    parts_.pop_back();
  }
}

void PromptParts::Cut() {
  std::vector<TextPiece> pieces;
  source_.tokenizer.Split(prompt_.text, pieces);
  for (const TextPiece& piece : pieces) {
    if (piece.is_token()) {
      AddToken(piece.token);
    } else {
      CutText(prompt_.literal_marks ? Unmarked(piece.text) : piece.text);
    }
    at_start_ = false;
  }
}

void PromptParts::CutText(std::string_view text) {
  while (text.size() > kLongPart) {
    const size_t cut = source_.tokenizer.NextCut(text, kLongPart);
    if (cut >= text.size()) break;
    AddText(text.substr(0, cut));
    text.remove_prefix(cut);
  }
  if (!text.empty()) AddText(text);
}

std::string_view PromptParts::Unmarked(std::string_view text) {
  if (!text.contains(kLiteralMark)) return text;
  return unmarked_.emplace_back(WithoutLiteralMarks(text));
}

std::string WithoutLiteralMarks(std::string_view text) {
  std::string out;
  size_t mark = text.find(kLiteralMark);
  for (; mark != std::string_view::npos; mark = text.find(kLiteralMark)) {
    out += text.substr(0, mark);
    text.remove_prefix(mark + kLiteralMark.size());
    // Twice: the text's own.
    if (!text.starts_with(kLiteralMark)) continue;
    out += kLiteralMark;
    text.remove_prefix(kLiteralMark.size());
  }
  out += text;
  return out;
}

void PromptParts::AddToken(TokenId token) { parts_.push_back({.token = token, .key = {token, 0}}); }

void PromptParts::AddText(std::string_view text) {
  Part& part = parts_.emplace_back();
  part.text = text;
  part.first = std::exchange(at_start_, false);
  part.key = KeyOfText(text, source_.secret);
  if (text.size() >= kLeastKept) part.known = source_.cache.Find(CacheKey(part));
  if (!part.known) missing_bytes_ += text.size();
}

// A tokenizer may put a space before the first text of a prompt.
TextKey PromptParts::CacheKey(const Part& part) const {
  const TextKey key = ChainText(source_.model, part.key, source_.secret);
  return part.first ? TextKey{key.low, ~key.high} : key;
}

Result<void> PromptParts::Complete(Encoder& encoder) {
  for (Part& part : parts_) {
    if (part.is_token() || part.known) continue;
    const bool kept = part.text.size() >= kLeastKept;
    // Others may have been faster while this waited for its turn.
    if (kept) part.known = source_.cache.Find(CacheKey(part));
    if (!part.known) TRY_VOID(Encode(part, encoder));
    missing_bytes_ -= part.text.size();
    if (kept) source_.cache.Put(CacheKey(part), part.known);
  }
  return {};
}

Result<void> PromptParts::Encode(Part& part, Encoder& encoder) {
  std::vector<TokenId> tokens;
  TRY_VOID(encoder.EncodeText(part.text, part.first, tokens));
  tokens.shrink_to_fit();
  part.known = std::make_shared<const std::vector<TokenId>>(std::move(tokens));
  return {};
}

void PromptParts::AppendTo(std::vector<TokenId>& tokens) const {
  for (const Part& part : parts_) {
    if (part.is_token()) {
      tokens.push_back(part.token);
    } else if (part.known) {
      tokens.insert(tokens.end(), part.known->begin(), part.known->end());
    } else {
      return;
    }
  }
}

std::vector<PromptParts::Place> PromptParts::Places() const {
  std::vector<Place> places;
  TextKey key = source_.model;
  size_t tokens = 0;
  size_t last = 0;
  for (const Part& part : parts_) {
    if (!part.is_token() && !part.known) break;
    key = ChainText(key, part.is_token() ? part.key : CacheKey(part), source_.secret);
    tokens += part.is_token() ? 1 : part.known->size();
    if (tokens - last < kPlaceDistance) continue;
    places.push_back({key, tokens});
    last = tokens;
  }
  return places;
}

}  // namespace fathom
