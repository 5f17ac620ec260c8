// Reads the parts of a tokenizer.json that are {"type": ..., ...}: normalizers, pre-tokenizers,
// post-processors, decoders.
//
// Errors  kCaller, naming the part.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/json.h"

namespace fathom {

// How deep Sequences may stand in one another.
constexpr int kMaxPartDepth = 16;

Result<std::string> PartType(const Json& part);
Result<std::string> PartText(const Json& part, std::string_view key);
// A missing or null one is `otherwise`.
Result<bool> PartFlag(const Json& part, std::string_view key, bool otherwise);
Result<const Json*> PartMember(const Json& part, std::string_view key);

// Appends the parts of a Sequence and of the Sequences in it (which list them under `key`), or the
// part itself. A null has none.
Result<void> FlattenParts(const Json& part, std::string_view key, std::vector<const Json*>& out,
                          int depth = 0);

}  // namespace fathom
