#include "diagnose/manifest/markdown.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace fathom {
namespace {

struct Fence {
  char letter = 0;
  size_t length = 0;
  std::string_view rest;  // the language, and whatever stands behind it
};

std::optional<Fence> FenceOf(std::string_view line) {
  const std::string_view trimmed = Trim(line);
  if (!trimmed.starts_with("```") && !trimmed.starts_with("~~~")) return std::nullopt;
  const size_t end = std::min(trimmed.find_first_not_of(trimmed[0]), trimmed.size());
  return Fence{trimmed[0], end, Trim(trimmed.substr(end))};
}

bool Closes(const Fence& fence, const Fence& open) {
  return fence.letter == open.letter && fence.length >= open.length && fence.rest.empty();
}

}  // namespace

std::vector<FencedBlock> FencedBlocks(const Passage& markdown) {
  std::vector<FencedBlock> blocks;
  const std::string_view text = markdown.text();
  std::optional<Fence> open;
  size_t start = 0;
  const auto close = [&](size_t end) {
    const std::string_view language = open->rest.substr(0, open->rest.find_first_of(" {,\t"));
    blocks.push_back({language, markdown.Part(start, end - start)});
    open.reset();
  };
  for (size_t at = 0; at < text.size();) {
    const size_t next = std::min(text.find('\n', at), text.size() - 1) + 1;
    const auto fence = FenceOf(text.substr(at, next - at));
    if (fence && !open) {
      open = fence;
      start = next;
    } else if (fence && Closes(*fence, *open)) {
      close(at);
    }
    at = next;
  }
  if (open) close(text.size());
  return blocks;
}

}  // namespace fathom
