#include "lab/mock/mock_options.h"

#include <algorithm>

namespace fathom {

bool IsAdapter(const MockOptions& options, std::string_view model) {
  return std::ranges::find(options.loras, model) != options.loras.end();
}

uint32_t BlockSizeOf(const MockOptions& options) {
  if (options.block_size > 0) return options.block_size;
  switch (options.engine) {
    case MockedEngine::kVllm:
      return 16;
    case MockedEngine::kSglang:
      return 1;
    case MockedEngine::kTrtllm:
      return 32;
  }
  return 16;
}

uint32_t NumBlocksOf(const MockOptions& options) {
  if (options.num_blocks > 0) return options.num_blocks;
  return static_cast<uint32_t>(std::max<uint64_t>(kDefaultCapacity / BlockSizeOf(options), 2));
}

uint64_t MaxModelLength(const MockOptions& options) {
  if (options.profile == kPaced) return kMostContext;
  const uint64_t usable = NumBlocksOf(options) - 1;
  return std::min(kMostContext, usable * BlockSizeOf(options));
}

}  // namespace fathom
