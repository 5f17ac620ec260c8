// How one field of an engine's event is read, whatever the event.
//
// Each takes one value from the reader, nil included, or says what is wrong with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/msgpack.h"
#include "events/cache_event.h"

namespace fathom {

// An engine's name of a block. Integers of any width and sign become their 64 bits; of a byte
// string (at least 8 bytes) the last 8 count, big-endian, which is what vLLM's integers are made
// of.
Result<uint64_t> TakeHash(MsgpackReader& in);
Result<std::optional<uint64_t>> TakeHashOrNil(MsgpackReader& in);
Result<std::vector<uint64_t>> TakeHashes(MsgpackReader& in);

// Token ids as they stand in an event.
struct EventTokens {
  std::vector<TokenId> ids;  // with pairs: the first of each, then the second of the last
  size_t positions = 0;      // elements of the list
  bool pairs = false;
  // Identifiers that stand in place of a token; the id there is 0. `block` is the position until
  // the block size is known.
  std::vector<ExtraKey> extra;
};
Result<EventTokens> TakeTokens(MsgpackReader& in);

// nil is 0.
Result<uint32_t> TakeNumber(MsgpackReader& in, uint32_t most);
// nil is empty.
Result<std::string> TakeName(MsgpackReader& in);
Result<Tier> TakeTier(MsgpackReader& in);

// A LoRA as older vLLM names it: by number only.
Result<std::string> TakeLoraId(MsgpackReader& in);

// A key of a map; empty when it is no string.
std::string_view TakeKey(MsgpackReader& in);
// Moves to the value of that key of the map that is next. False: there is no such map, or key.
bool Seek(MsgpackReader& in, std::string_view key);

// What an element of a block's extra keys stands for.
Result<uint64_t> TakeExtraKey(MsgpackReader& in);

}  // namespace fathom
