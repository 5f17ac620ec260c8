#include "router/gateway/blind_prompts.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "text/tokens/text_key.h"

namespace fathom {
namespace {

constexpr uint64_t kMostTokens = uint64_t{1} << 30;  // of a prompt; more is no count

// Two ranks rarely share one: then nothing that one of them has is counted as wasted on the other.
uint16_t MarkOf(RankLabel rank) {
  constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;
  const uint64_t mixed = (rank.worker ^ std::rotl(uint64_t{rank.dp_rank} + 1, 32)) * kSpread;
  return static_cast<uint16_t>(std::max<uint64_t>(mixed >> 48, 1));
}

uint32_t TokensIn(double share, uint64_t tokens) {
  return static_cast<uint32_t>(share * static_cast<double>(tokens));
}

}  // namespace

// In the order in which templates write them.
TextPieces::TextPieces(const PromptFields& parts, uint64_t space, uint64_t secret) {
  names_.push_back(space);
  Append(parts.tools, false, secret);
  Append(parts.system, false, secret);
  Append(parts.instructions, false, secret);
  for (const std::string_view turns : {parts.messages, parts.input, parts.prompt}) {
    Append(turns, true, secret);
  }
  names_.erase(names_.begin());
}

// The end of a conversation is not its end in the next turn: what does not fill a piece there has
// no name.
void TextPieces::Append(std::string_view part, bool open_ended, uint64_t secret) {
  size_t at = 0;
  while (at < part.size() && names_.size() <= kMostPieces) {
    const std::string_view piece = part.substr(at, kPiece);
    if (open_ended && piece.size() < kPiece) break;
    const TextKey before{.low = names_.back(), .high = 0};
    names_.push_back(ChainText(before, piece, secret).low);
    at += piece.size();
    ends_.push_back(bytes_ + at);
  }
  bytes_ += part.size();
}

double TextPieces::Share(size_t pieces) const {
  if (pieces == 0 || bytes_ == 0) return 0;
  return static_cast<double>(ends_[pieces - 1]) / static_cast<double>(bytes_);
}

BlindPrompts::Known BlindPrompts::Find(const std::vector<uint64_t>& names, RankLabel rank,
                                       TimePoint now) {
  Known known;
  const uint16_t mark = MarkOf(rank);
  const std::lock_guard lock(mutex_);
  if (slots_.empty()) return known;
  for (const uint64_t name : names) {
    const Slot& slot = slots_[name % kSlots];
    if (slot.name != name || now - slot.last > kKept) break;
    const bool has_it = std::ranges::find(slot.ranks, mark) != slot.ranks.end();
    if (has_it && known.here == known.anywhere) ++known.here;
    ++known.anywhere;
  }
  return known;
}

void BlindPrompts::Add(const std::vector<uint64_t>& names, RankLabel rank, TimePoint now) {
  const uint16_t mark = MarkOf(rank);
  const std::lock_guard lock(mutex_);
  if (slots_.empty()) slots_.resize(kSlots);
  for (const uint64_t name : names) {
    Slot& slot = slots_[name % kSlots];
    if (slot.name != name || now - slot.last > kKept) slot = {.name = name};
    // To the front, in place of where it was or of the oldest.
    const auto was = std::ranges::find(slot.ranks, mark);
    const auto end = was == slot.ranks.end() ? was : was + 1;
    std::shift_right(slot.ranks.begin(), end, 1);
    slot.ranks.front() = mark;
    slot.last = now;
  }
}

BlindPrompt::BlindPrompt(BlindPrompts& all, TextPieces pieces, RankLabel rank, TimePoint now)
    : all_(all), rank_(rank) {
  const BlindPrompts::Known known = all.Find(pieces.names(), rank, now);
  anywhere_ = pieces.Share(known.anywhere);
  here_ = pieces.Share(known.here);
  names_ = std::move(pieces).TakeNames();
}

void BlindPrompt::FirstByte(TimePoint now) {
  if (!first_byte_) all_.Add(names_, rank_, now);
  first_byte_ = true;
  names_ = {};
}

std::optional<BlindPrompt::Outcome> BlindPrompt::End(const std::optional<EngineUsage>& usage,
                                                     uint64_t guess) const {
  if (!first_byte_) return std::nullopt;
  const bool counted = usage && usage->prompt_tokens <= kMostTokens;
  const uint64_t tokens = std::min(counted ? usage->prompt_tokens : guess, kMostTokens);
  const uint64_t found = counted ? std::min(usage->cached_tokens.value_or(0), tokens) : 0;
  // What the chosen rank had and lost again was not lost because the prompt was not read.
  const uint32_t here = TokensIn(here_, tokens);
  const uint32_t used = std::max(here, static_cast<uint32_t>(found));
  const uint32_t anywhere = TokensIn(anywhere_, tokens);
  return Outcome{.prompt_tokens = tokens, .wasted = anywhere - std::min(anywhere, used)};
}

}  // namespace fathom
