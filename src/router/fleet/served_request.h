// What one answered request shows about the rank that served it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace fathom {

// What separates a prompt's blocks from those of others. If the engine hashes a value that the
// router does not see (or the reverse), only one of these spaces is affected.
enum class PromptSpace : uint8_t { kPlain, kAdapter, kSalted };
constexpr size_t kPromptSpaces = 3;

// How the tokens of a prompt come about. An engine prepares chats with a feature in its own way, so
// that often only the prompts of one kind have other tokens than the router computes.
enum class PromptKind : uint8_t {
  kIds,        // the client sent them, or the engine gave them because the files differ
  kText,       // of a completion
  kChat,       // without any of the following; of several, the first one that holds counts
  kMedia,      // images, audio, video or files
  kDeveloper,  // messages of that role
  kTools,
  kOptions,   // of the template: chat_template_kwargs, reasoning_effort, documents and the like
  kMessages,  // by /v1/messages, whatever is in it
  kResponses,
};
constexpr size_t kPromptKinds = 9;

// The counts of a rank's stream at some moment; they only grow.
struct PulseReading {
  uint64_t removed = 0;  // blocks
  uint64_t lives = 0;    // times that the rank's entries were cleared
  bool operator==(const PulseReading&) const = default;
};

struct ServedRequest {
  PromptSpace space = PromptSpace::kPlain;
  uint32_t block_size = 16;  // of the rank, if known
  // Leading tokens of the prompt:
  uint32_t predicted = 0;          // cached according to events
  uint32_t repeated = 0;           // that the rank has computed before
  uint32_t untold = 0;             // likewise, so long ago that an event should have reported it
  std::optional<uint32_t> cached;  // cached according to the engine
  bool comparable = true;          // nothing in the request makes the engine count differently
  bool has_block = false;          // the prompt fills at least one block
  bool has_news = false;           // it fills a block that the rank is not known to have computed
  TimePoint sent{};
  PulseReading pulse;  // of the rank, when the request was sent
};

}  // namespace fathom
