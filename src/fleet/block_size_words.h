// What is said about block sizes, in words that name the cause and the fix.
//
// The words of a mismatch with the operator's setting are those that users asked for; what engines
// call their block size follows the engine.
#pragma once

#include <string>

#include "base/log.h"
#include "fleet/block_size_agreement.h"
#include "fleet/trust_words.h"

namespace fathom {

// How to give an engine blocks of that size: "--block-size 16", "tokens_per_block=16".
std::string EngineSetting(EngineKind engine, uint32_t size);

// The record's message; it may have several lines.
std::string WordsOf(const SizeRemark& remark);
void Say(const SizeRemark& remark, Log& log);

// Why a rank has no trust, in numbers, and what to do about it.
struct TrustFacts {
  Trust trust;
  EngineKind engine = EngineKind::kUnknown;
  BlockSizeAgreement::Known known;
  uint32_t expected = 0;
  uint64_t mismatches = 0;
};
TrustWords WordsOf(const TrustFacts& facts);

}  // namespace fathom
