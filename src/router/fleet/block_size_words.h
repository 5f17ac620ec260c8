// The texts about block sizes; each names the cause and the fix.
//
// The text of a mismatch with the operator's setting is the one that users asked for. It names the
// setting that is in force: another one of the same meaning would change nothing. The name of the
// block-size option is the engine's own.
#pragma once

#include <optional>
#include <string>

#include "base/log.h"
#include "router/fleet/block_size_agreement.h"
#include "router/fleet/trust_words.h"

namespace fathom {

// The option that gives an engine this block size: "--block-size 16", "tokens_per_block=16".
std::string EngineSetting(EngineKind engine, uint32_t size);

// The message of the log record; it may have several lines.
std::string WordsOf(const SizeRemark& remark);
void Say(const SizeRemark& remark, Log& log);

// Why a rank is not trusted, in numbers, and the fix.
struct TrustFacts {
  Trust trust;
  EngineKind engine = EngineKind::kUnknown;
  BlockSizeAgreement::Known known;
  uint32_t expected = 0;
  uint64_t mismatches = 0;
  SizeRemark::Others others = SizeRemark::Others::kAgree;
  std::optional<SizeSetting> setting = {};  // nothing: the size is learned
};
TrustWords WordsOf(const TrustFacts& facts);

}  // namespace fathom
