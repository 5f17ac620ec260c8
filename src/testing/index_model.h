// For tests: a simple index for comparison, and random engine events to feed both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "base/random.h"
#include "router/index/prefix_index.h"

namespace fathom {

// A tree of blocks; its paths are prompts. Local hashes and engine hashes are random.
struct PromptTree {
  struct Block {
    int parent;  // -1: first block of a prompt
    uint64_t local;
    uint64_t hash;
    size_t depth;
  };
  std::vector<Block> blocks;

  PromptTree(size_t size, Random& random) {
    for (size_t i = 0; i < size; ++i) {
      // Long runs with few branches, like conversations.
      int parent = static_cast<int>(i) - 1;
      if (random.Below(8) == 0) parent = static_cast<int>(random.Below(i + 1)) - 1;
      const size_t depth = parent < 0 ? 0 : blocks[static_cast<size_t>(parent)].depth + 1;
      blocks.push_back({parent, random.Next(), random.Next(), depth});
    }
  }

  // From the root to `block`.
  std::vector<size_t> Path(size_t block) const {
    std::vector<size_t> path;
    for (int at = static_cast<int>(block); at >= 0; at = blocks[static_cast<size_t>(at)].parent) {
      path.push_back(static_cast<size_t>(at));
    }
    std::ranges::reverse(path);
    return path;
  }
  std::vector<uint64_t> Locals(const std::vector<size_t>& path) const {
    std::vector<uint64_t> locals;
    for (const size_t block : path) locals.push_back(blocks[block].local);
    return locals;
  }
};

// A cache group of the ranks under test.
struct ModelGroup {
  uint32_t number = 0;
  uint32_t window = 0;  // tokens; 0: full attention
};

// The holdings of one rank, by counting.
class ModelRank {
 public:
  void Add(CachePart part, size_t block) { ++copies_[{part.tier, part.group, block}]; }
  bool Remove(CachePart part, size_t block) {
    const auto found = copies_.find({part.tier, part.group, block});
    if (found == copies_.end()) return false;
    if (--found->second == 0) copies_.erase(found);
    return true;
  }
  void Clear() { copies_.clear(); }
  bool Holds(Tier slowest, uint32_t group, size_t block) const {
    for (size_t tier = 0; tier <= static_cast<size_t>(slowest); ++tier) {
      if (copies_.contains({static_cast<Tier>(tier), group, block})) return true;
    }
    return false;
  }

  // Directly by the rule: the largest boundary before which every full group has all blocks and
  // every window group those of its window.
  Depth DepthOf(const std::vector<size_t>& path, const std::vector<ModelGroup>& groups,
                uint32_t block_size) const {
    Depth depth;
    for (size_t tier = 0; tier < kTiers; ++tier) {
      for (size_t h = path.size(); h > 0; --h) {
        if (!CanContinue(static_cast<Tier>(tier), path, h, groups, block_size)) continue;
        depth.blocks[tier] = static_cast<uint32_t>(h);
        break;
      }
    }
    return depth;
  }

 private:
  bool CanContinue(Tier tier, const std::vector<size_t>& path, size_t h,
                   const std::vector<ModelGroup>& groups, uint32_t block_size) const {
    for (const ModelGroup& group : groups) {
      const size_t needed =
          group.window == 0 ? h : (group.window - 1 + block_size - 1) / block_size;
      for (size_t i = h - std::min(h, needed); i < h; ++i) {
        if (!Holds(tier, group.number, path[i])) return false;
      }
    }
    return true;
  }

  std::map<std::tuple<Tier, uint32_t, size_t>, uint32_t> copies_;
};

}  // namespace fathom
