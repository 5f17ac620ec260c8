// How is one field of an engine's event read, whatever the kind of event?
//
// Each function takes one value from the reader (nil included), or returns an error that describes
// the value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/msgpack.h"
#include "router/events/cache_event.h"

namespace fathom {

// A block hash. Integers of any width and sign become their 64 bits. Of a byte string (at least 8
// bytes) the last 8 bytes are used, big-endian, because vLLM derives its integers in the same way.
Result<uint64_t> TakeHash(MsgpackReader& in);
Result<std::optional<uint64_t>> TakeHashOrNil(MsgpackReader& in);
Result<std::vector<uint64_t>> TakeHashes(MsgpackReader& in);

struct EventTokens {
  std::vector<TokenId> ids;  // if `pairs`: the first of each pair, then the second of the last
  size_t positions = 0;      // elements of the list in the event
  bool pairs = false;
  // Identifiers that take the place of a token; the token id there is 0. `block` holds the position
  // until the block size is known.
  std::vector<ExtraKey> extra;
};
Result<EventTokens> TakeTokens(MsgpackReader& in);

// nil is 0.
Result<uint32_t> TakeNumber(MsgpackReader& in, uint32_t most);
// nil is empty.
Result<std::string> TakeName(MsgpackReader& in);
Result<Tier> TakeTier(MsgpackReader& in);

// A LoRA of older vLLM releases, which report only its number.
Result<std::string> TakeLoraId(MsgpackReader& in);

// A key of a map; empty if it is not a string.
std::string_view TakeKey(MsgpackReader& in);
// Moves to the value of `key` in the map that is next. False: no map is next, or it lacks the key.
bool Seek(MsgpackReader& in, std::string_view key);

// The number of one element of a block's extra keys.
Result<uint64_t> TakeExtraKey(MsgpackReader& in);

}  // namespace fathom
