// For tests: what does an engine really hold, beside what it says?
//
// An engine in virtual time that remembers every block it ever stored, so that its true cache can
// be compared with what a router believes of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lab/mock/engine_core.h"
#include "lab/mock/timing_profile.h"

namespace fathom {

class SimulatedEngine {
 public:
  explicit SimulatedEngine(const EngineOptions& options) : core_(options, profile_) {}

  EngineCore& core() { return core_; }
  const EngineCore& core() const { return core_; }
  uint32_t block_size() const { return core_.options().block_size; }

  // The engine tells of a reset with its next step only.
  bool keeps_a_secret() const { return secret_; }
  void Reset() { secret_ = core_.ResetPrefixCache() || secret_; }

  // What happened to the cache; valid until the next step.
  const std::vector<KvEvent>& Step() {
    if (!core_.Step(step_)) step_.events.clear();
    for (const KvEvent& event : step_.events) {
      if (const auto* stored = std::get_if<BlocksStored>(&event)) Learn(*stored);
    }
    if (!step_.events.empty()) secret_ = false;
    return step_.events;
  }

  // As a process that died and came back, perhaps with blocks of another size.
  void Restart(uint32_t block_size) {
    secret_ = false;
    if (block_size != this->block_size()) blocks_.clear();
    core_.Restart(block_size);
  }

  // A prompt that ends with a block, and how much of it the engine really holds.
  struct Prompt {
    std::vector<TokenId> tokens;
    std::string salt;
    size_t held = 0;  // leading tokens
  };
  // Of every `stride`-th block that was stored.
  std::vector<Prompt> Prompts(size_t first, size_t stride) const {
    std::vector<Prompt> prompts;
    size_t i = 0;
    for (const auto& [hash, block] : blocks_) {
      if (i++ % stride == first) prompts.push_back(PromptOf(hash));
    }
    std::erase_if(prompts, [](const Prompt& prompt) { return prompt.tokens.empty(); });
    return prompts;
  }
  size_t known_blocks() const { return blocks_.size(); }
  void ForgetPrompts() { blocks_.clear(); }

 private:
  struct NoTime final : TimingProfile {
    Duration StepTime(const StepLoad&) const override { return std::chrono::milliseconds(1); }
  };
  struct Block {
    std::optional<BlockHash> parent;
    std::vector<TokenId> tokens;
    std::string salt;
  };

  void Learn(const BlocksStored& stored) {
    std::optional<BlockHash> parent = stored.parent;
    std::string salt = stored.salt;
    if (parent && blocks_.contains(*parent)) salt = blocks_.at(*parent).salt;
    auto begin = stored.tokens.begin();
    for (const BlockHash hash : stored.hashes) {
      const auto end = begin + static_cast<ptrdiff_t>(stored.block_size);
      blocks_[hash] = {parent, {begin, end}, salt};
      parent = hash;
      begin = end;
    }
  }
  // Empty if the beginning is not known any more.
  Prompt PromptOf(BlockHash hash) const {
    std::vector<BlockHash> path;
    for (std::optional<BlockHash> at = hash; at; at = blocks_.at(*at).parent) {
      if (!blocks_.contains(*at)) return {};
      path.push_back(*at);
    }
    Prompt prompt;
    prompt.salt = blocks_.at(path.back()).salt;
    bool unbroken = true;
    for (auto it = path.rbegin(); it != path.rend(); ++it) {
      const Block& block = blocks_.at(*it);
      prompt.tokens.insert(prompt.tokens.end(), block.tokens.begin(), block.tokens.end());
      unbroken = unbroken && core_.pool().Find(*it).has_value();
      if (unbroken) prompt.held = prompt.tokens.size();
    }
    prompt.tokens.push_back(0);  // the one that is always computed
    return prompt;
  }

  const NoTime profile_;
  EngineCore core_;
  EngineStep step_;
  bool secret_ = false;
  std::map<BlockHash, Block> blocks_;  // everything that was ever stored
};

}  // namespace fathom
