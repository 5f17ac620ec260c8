// What does a message of an engine's event stream say?
//
// One decoder for vLLM (0.9 to today), SGLang and TensorRT-LLM's streaming: they share the envelope
// [timestamp, [event...], rank], and an event says by its shape which release made it.
//
//   array  [tag, field...], the fields by position. Later releases append; what is missing at the
//          end is nil, what is more than known is skipped. The seventh field is a LoRA name
//          (vLLM: string or nil) or {"cache_salt": ...} (SGLang: map).
//   map    {"type": tag, name: field...}, in any order; unknown names are skipped.
//
// Errors  Bytes that are not msgpack, or no envelope: the batch is an error (the peer's). An event
//         inside that makes no sense is left out and counted in `malformed`: the others are as good
//         as ever, and to lose them as well would cost more than the one.
// Limits  kMax... below; beyond them an event is malformed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "events/cache_event.h"

namespace fathom {

constexpr uint32_t kMaxEventsPerBatch = 1u << 20;
constexpr uint32_t kMaxHashesPerEvent = 1u << 20;
constexpr uint32_t kMaxTokensPerEvent = 1u << 24;
constexpr uint32_t kMaxBlockSize = 1u << 20;
constexpr size_t kMaxNamespaceBytes = 4096;  // of a LoRA name or a salt

Result<EventBatch> DecodeEventBatch(std::string_view payload);

}  // namespace fathom
