// What does one event of a batch contain? Its fields, by position or by name.
#pragma once

#include <optional>

#include "base/result.h"
#include "codec/msgpack.h"
#include "router/events/cache_event.h"

namespace fathom {

// nullopt: an event of an unknown kind, or without content. The reader is past the event only if it
// was a stored or a removed event.
Result<std::optional<CacheEvent>> TakeEvent(MsgpackReader& in);

}  // namespace fathom
