#include "router/fleet/token_agreement.h"

#include <algorithm>
#include <utility>

namespace fathom {
namespace {

using Likely = TokenDifference::Likely;

size_t CommonPrefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// This many equal tokens in a row are no coincidence.
constexpr size_t kTelling = 4;
// How far to search for them. Requests with a shared prefix diverge in this way all the time, and
// every event of one is searched for the tokens that the other expects.
constexpr size_t kLookedAt = 64;

std::span<const TokenId> Some(std::span<const TokenId> tokens) {
  return tokens.first(std::min(tokens.size(), kLookedAt));
}

bool BeginAlike(std::span<const TokenId> a, std::span<const TokenId> b) {
  const size_t enough = std::min({a.size(), b.size(), size_t{8}});
  return enough >= kTelling && CommonPrefix(a, b) >= enough;
}

bool ShareSome(std::span<const TokenId> a, std::span<const TokenId> b) {
  for (size_t i = 0; i + kTelling <= a.size(); ++i) {
    if (!std::ranges::search(b, a.subspan(i, kTelling)).empty()) return true;
  }
  return false;
}

// Whether the engine recomputed blocks that were thought to be cached, and then continued with the
// expected tokens.
bool ComesToOurs(const ExpectedBlocks& expected, std::span<const TokenId> theirs) {
  const size_t size = expected.block_size;
  if (size == 0 || expected.tokens.size() < size) return false;
  const auto ours = std::span(expected.tokens).first(size);
  for (size_t i = size; i <= expected.from && i + size <= theirs.size(); i += size) {
    if (std::ranges::equal(theirs.subspan(i, size), ours)) return true;
  }
  return false;
}

// Both spans start at the first token that differs.
Likely Guess(std::span<const TokenId> ours, std::span<const TokenId> theirs, bool at_start) {
  if (at_start && BeginAlike(ours, theirs.subspan(1))) return Likely::kExtraFirst;
  if (at_start && BeginAlike(ours.subspan(1), theirs)) return Likely::kMissingFirst;
  return ShareSome(ours, theirs) || !at_start ? Likely::kTemplate : Likely::kVocabulary;
}

}  // namespace

std::optional<TokenDifference> FirstDifference(std::span<const TokenId> ours,
                                               std::span<const TokenId> theirs) {
  const size_t common = CommonPrefix(ours, theirs);
  if (common == ours.size() && common == theirs.size()) return std::nullopt;
  TokenDifference difference{.located = true, .position = static_cast<uint32_t>(common)};
  difference.ours = common < ours.size() ? std::optional(ours[common]) : std::nullopt;
  difference.theirs = common < theirs.size() ? std::optional(theirs[common]) : std::nullopt;
  if (difference.ours && difference.theirs) {
    difference.likely =
        Guess(Some(ours.subspan(common)), Some(theirs.subspan(common)), common == 0);
  }
  return difference;
}

bool TokenAgreement::MayExpect(TimePoint now) const {
  if (noted_.size() < kMost) return true;
  return noted_.front().judged || now - noted_.front().sent > kPatience;
}

// A request that was alone stays so if its events came before this one was sent: they were its own.
void TokenAgreement::Sent(bool busy) {
  for (Noted& noted : noted_) noted.alone = noted.alone && noted.known_events;
  next_alone_ = !busy;
}

void TokenAgreement::Expect(ExpectedBlocks expected, TimePoint now) {
  if (noted_.size() == kMost) noted_.erase(noted_.begin());
  noted_.push_back({.expected = std::move(expected), .sent = now, .alone = next_alone_});
}

void TokenAgreement::FirstByte(uint64_t id, TimePoint now) {
  const auto noted = std::ranges::find(noted_, id, [](const Noted& n) { return n.expected.id; });
  if (noted == noted_.end()) return;
  if (noted->agreed) {
    noted_.erase(noted);
  } else {
    noted->first_byte = now;
  }
}

void TokenAgreement::Withdraw(uint64_t id) {
  std::erase_if(noted_, [id](const Noted& noted) { return noted.expected.id == id; });
}

void TokenAgreement::Reset() {
  noted_.clear();
  records_ = {};
  for (size_t i = 0; probed_ && i < kPromptKinds; ++i) TakeProbe(i);
}

void TokenAgreement::Probed(std::shared_ptr<const ParityReport> report) {
  const auto before = std::exchange(probed_, std::move(report));
  for (size_t i = 0; i < kPromptKinds; ++i) {
    const ParityVerdict was = before ? before->verdicts[i] : ParityVerdict::kUnknown;
    if (was != probed_->verdicts[i]) TakeProbe(i);
  }
}

void TokenAgreement::TakeProbe(size_t kind) {
  Record& record = records_[kind];
  switch (probed_->verdicts[kind]) {
    case ParityVerdict::kAgrees:
      record = {.probe_agrees = true};
      break;
    case ParityVerdict::kDiffers:
      record = {.weight = kDoubt, .difference = probed_->differences[kind]};
      record.difference.probed = true;
      break;
    case ParityVerdict::kUnknown:
    case ParityVerdict::kCannotAsk:
      if (record.difference.probed) record = {};
      break;
  }
}

// Finds the first position where the two differ, and the likely reason.
void TokenAgreement::Locate(const Noted& noted, std::span<const TokenId> ours, uint32_t position,
                            std::span<const TokenId> theirs) {
  const size_t common = CommonPrefix(ours, theirs);
  if (common >= ours.size() || common >= theirs.size()) return;
  TokenDifference& difference = RecordOf(noted).difference;
  if (difference.probed) return;
  difference.located = true;
  difference.position = position + static_cast<uint32_t>(common);
  difference.ours = ours[common];
  difference.theirs = theirs[common];
  difference.likely =
      Guess(Some(ours.subspan(common)), Some(theirs.subspan(common)), difference.position == 0);
  difference.model = noted.expected.model;
}

TokenAgreement::Verdict TokenAgreement::Compare(const Noted& noted, const StoredTokens& stored) {
  const ExpectedBlocks& expected = noted.expected;
  const bool at_start = stored.place == StoredTokens::Place::kBeginning;
  const uint64_t before = at_start ? 0 : stored.before;
  // The index of the expected block at which the event continues.
  size_t block = 0;
  if (before != expected.before) {
    const auto at = std::ranges::find(expected.keys, before);
    if (at == expected.keys.end()) {
      return ComesToOurs(expected, stored.tokens) ? Verdict::kAgrees : Verdict::kOther;
    }
    block = static_cast<size_t>(at - expected.keys.begin()) + 1;
  }
  const size_t skipped = block * expected.block_size;
  // The event continues after all expected blocks: it holds generated tokens, and its time is not a
  // lag.
  if (skipped + expected.block_size > expected.tokens.size()) return Verdict::kContinues;
  const auto ours = std::span(expected.tokens).subspan(skipped);
  const size_t compared = std::min<size_t>(expected.block_size, stored.tokens.size());
  if (std::ranges::equal(ours.first(compared), stored.tokens.first(compared)))
    return Verdict::kAgrees;
  Locate(noted, ours, expected.from + static_cast<uint32_t>(skipped), stored.tokens);
  return Verdict::kOther;
}

std::optional<Duration> TokenAgreement::Stored(const StoredTokens& stored, TimePoint now) {
  std::optional<Duration> lag;
  for (Noted& noted : noted_) {
    if (noted.agreed) continue;
    if (stored.place == StoredTokens::Place::kUnknown) {
      noted.unknown_events = true;
      continue;
    }
    noted.known_events = true;
    const Verdict verdict = Compare(noted, stored);
    if (verdict == Verdict::kOther) continue;
    noted.agreed = now;
    RecordOf(noted) = {.agrees = true};
    if (verdict == Verdict::kContinues || !noted.first_byte) continue;
    lag = std::max(lag.value_or(Duration::zero()), now - *noted.first_byte);
  }
  std::erase_if(noted_, [](const Noted& noted) { return noted.agreed && noted.first_byte; });
  return lag;
}

void TokenAgreement::Judge(Noted& noted, TimePoint now) {
  if (noted.judged || noted.agreed || !noted.first_byte) return;
  if (now - *noted.first_byte < kPatience) return;
  noted.judged = true;
  if (!noted.known_events || noted.unknown_events) return;
  Record& record = RecordOf(noted);
  record.weight = std::min(record.weight + (noted.alone ? kAlone : 1), 2 * kDoubt);
  if (record.weight >= kDoubt) record.agrees = record.probe_agrees = false;
  ++record.difference.requests;
}

bool TokenAgreement::OthersAgree(const Record& record) const {
  return std::ranges::any_of(records_, [&](const Record& other) {
    return other.agrees || (record.difference.probed && other.probe_agrees);
  });
}

bool TokenAgreement::Differs(PromptKind kind) const {
  const Record& own = records_[static_cast<size_t>(kind)];
  return std::ranges::any_of(records_, [&](const Record& record) {
    return record.weight >= kDoubt && (&record == &own || !OthersAgree(record));
  });
}

std::optional<TokenDifference> TokenAgreement::Look(TimePoint now) {
  for (Noted& noted : noted_) Judge(noted, now);
  std::erase_if(noted_, [now](const Noted& noted) { return now - noted.sent > kRemembered; });
  const auto most = std::ranges::max_element(records_, {}, &Record::weight);
  if (most->weight < kDoubt) return std::nullopt;
  TokenDifference difference = most->difference;
  difference.kind = static_cast<PromptKind>(most - records_.begin());
  for (size_t i = 0; i < kPromptKinds; ++i) difference.kinds[i] = records_[i].weight >= kDoubt;
  difference.others_agree = OthersAgree(*most);
  return difference;
}

}  // namespace fathom
