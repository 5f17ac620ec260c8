// How much of a prompt that was routed without its prefix had been computed on another rank before?
//
// An estimate from the text, for the accounting of waste alone: no choice depends on it. The text
// is cut into pieces of kPiece bytes. A piece is named by all text up to its end, and for each name
// it is remembered which ranks were sent it within the last kKept. The share of the text that
// another rank has computed and the chosen one has not, times the tokens of the prompt, is what the
// router would have saved if it had read the prompt.
//
// It is too low where texts are forgotten because their slot is needed, and for prompts of more
// than kMostPieces. It is too high for what an engine has evicted since, and for a chosen rank that
// has the text but is not among the last kRanks, if the engine does not report what it found.
//
// Threads  Any. One mutex, taken only for prompts that are not read.
// Memory   kSlots slots of 24 bytes, from the first such prompt on; 8 bytes per piece of a request
//          until its first byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/rank_label.h"
#include "router/gateway/request_fields.h"
#include "router/gateway/usage_report.h"

namespace fathom {

// The pieces of one text.
class TextPieces {
 public:
  static constexpr size_t kPiece = 128;  // bytes: about a block of an engine
  static constexpr size_t kMostPieces = 2048;

  // `space` is what keeps caches apart: the model, its adapter, a salt.
  TextPieces(const PromptFields& parts, uint64_t space, uint64_t secret);

  const std::vector<uint64_t>& names() const { return names_; }
  std::vector<uint64_t> TakeNames() && { return std::move(names_); }
  // Of the whole text that the first `pieces` make up.
  double Share(size_t pieces) const;

 private:
  void Append(std::string_view part, bool open_ended, uint64_t secret);

  std::vector<uint64_t> names_;
  std::vector<size_t> ends_;  // of the pieces, in bytes of the text
  size_t bytes_ = 0;
};

class BlindPrompts {
 public:
  static constexpr size_t kSlots = size_t{1} << 18;
  static constexpr size_t kRanks = 4;  // that are remembered for a piece
  static constexpr Duration kKept = std::chrono::minutes(10);

  // Leading pieces that were computed lately.
  struct Known {
    size_t anywhere = 0;
    size_t here = 0;  // on the rank that is asked for
  };
  Known Find(const std::vector<uint64_t>& names, RankLabel rank, TimePoint now);
  // The rank computes them.
  void Add(const std::vector<uint64_t>& names, RankLabel rank, TimePoint now);

 private:
  struct Slot {
    uint64_t name = 0;
    std::array<uint16_t, kRanks> ranks{};  // marks of those that have it, the latest first; 0: none
    TimePoint last{};
  };

  std::mutex mutex_;         // guards the rest
  std::vector<Slot> slots_;  // empty until the first prompt
};

// One prompt, from its choice to the end of its answer.
class BlindPrompt {
 public:
  BlindPrompt(BlindPrompts& all, TextPieces pieces, RankLabel rank, TimePoint now);

  // The engine has computed the prompt.
  void FirstByte(TimePoint now);

  struct Outcome {
    uint64_t prompt_tokens = 0;
    uint32_t wasted = 0;

    bool operator==(const Outcome&) const = default;
  };
  // Nothing if the request failed. `guess` is the number of tokens, if the engine does not report.
  std::optional<Outcome> End(const std::optional<EngineUsage>& usage, uint64_t guess) const;

 private:
  BlindPrompts& all_;
  const RankLabel rank_;
  std::vector<uint64_t> names_;  // of its pieces, until the first byte
  // Shares of the text that were computed before.
  double anywhere_ = 0;
  double here_ = 0;
  bool first_byte_ = false;
};

}  // namespace fathom
