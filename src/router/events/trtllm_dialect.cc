#include "router/events/trtllm_dialect.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace fathom {
namespace {

size_t CountTokens(const TrtllmEvent& event) {
  const auto* stored = std::get_if<TrtllmStored>(&event.data);
  if (stored == nullptr) return 0;
  size_t tokens = 0;
  for (const TrtllmBlock& block : stored->blocks) tokens += block.tokens.size();
  return tokens;
}

bool IsBare(const TrtllmEvent& event) { return std::holds_alternative<TrtllmOther>(event.data); }

// The token count of the block with that hash; 0 if the event has no such block.
size_t TokensOf(const TrtllmEvent& event, uint64_t hash) {
  const auto* stored = std::get_if<TrtllmStored>(&event.data);
  if (stored == nullptr) return 0;
  const auto found = std::ranges::find(stored->blocks, hash, &TrtllmBlock::hash);
  return found == stored->blocks.end() ? 0 : found->tokens.size();
}

bool HasLargerBlock(const TrtllmEvent& event, uint32_t size) {
  const auto* stored = std::get_if<TrtllmStored>(&event.data);
  return stored != nullptr && std::ranges::any_of(stored->blocks, [&](const TrtllmBlock& block) {
           return block.tokens.size() > size;
         });
}

// Appends to the last event if it has the same tier, else begins another.
RemovedEvent& RemovedFrom(std::vector<CacheEvent>& out, Tier tier, uint32_t group) {
  auto* last = out.empty() ? nullptr : std::get_if<RemovedEvent>(&out.back());
  if (last == nullptr || last->tier != tier)
    last = &std::get<RemovedEvent>(out.emplace_back(RemovedEvent{{}, tier, group}));
  return *last;
}

void Append(StoredEvent& event, TrtllmBlock& block) {
  const auto index = static_cast<uint32_t>(event.hashes.size());
  event.hashes.push_back(block.hash);
  event.tokens.insert(event.tokens.end(), block.tokens.begin(), block.tokens.end());
  std::ranges::sort(block.keys);
  const auto repeated = std::ranges::unique(block.keys);
  block.keys.erase(repeated.begin(), repeated.end());
  for (const uint64_t key : block.keys) event.extra.push_back({index, key});
}

}  // namespace

Result<std::vector<PolledEvent>> TrtllmDecoder::Decode(std::string_view body) {
  TRY(std::vector<TrtllmEvent> events, Read(body));
  Output out;
  for (TrtllmEvent& event : events) TakeOne(std::move(event), out);
  return out;
}

Result<std::vector<TrtllmEvent>> TrtllmDecoder::Read(std::string_view body) {
  Result<Json> json = Json::Parse(body);
  if (!json) return Fail(Blame::kPeer, "KV cache events: {}", json.error().what);
  const Json::Array* array = json->array();
  if (array == nullptr) return Fail(Blame::kPeer, "KV cache events: not a JSON array");
  std::vector<TrtllmEvent> events;
  for (const Json& one : *array) {
    Result<TrtllmEvent> event = ReadTrtllmHead(one);
    if (!event) {
      Complain("an event", event.error().what);
      continue;
    }
    if (const Result<> read = ReadTrtllmData(one, *event); !read) {
      Complain(fmt::format("event {}", event->id), read.error().what);
      event->data = TrtllmOther{};
      event->window = 0;
    }
    events.push_back(*std::move(event));
  }
  return events;
}

std::vector<PolledEvent> TrtllmDecoder::Take(TrtllmEvent event) {
  Output out;
  TakeOne(std::move(event), out);
  return out;
}

uint32_t TrtllmDecoder::block_size(uint32_t rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? 0 : found->second.block_size;
}

uint64_t TrtllmDecoder::window(uint32_t rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? 0 : found->second.window;
}

void TrtllmDecoder::Resume(uint32_t rank, const Past& past) {
  if (ranks_.size() >= kMaxRanks && !ranks_.contains(rank)) return;
  Rank& known = ranks_[rank] = {};
  known.begun = known.stored = true;
  known.last_id = past.last_id;
  known.window = past.window;
  known.block_size = past.block_size;
  for (const auto& [hash, tier] : past.elsewhere) {
    if (known.places.size() == kMaxRemembered) break;
    known.places.emplace(hash, tier);
  }
}

size_t TrtllmDecoder::held(uint32_t rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? 0 : found->second.held.size();
}

uint32_t TrtllmDecoder::largest_held(uint32_t rank) const {
  const auto found = ranks_.find(rank);
  size_t largest = 0;
  if (found == ranks_.end()) return 0;
  for (const TrtllmEvent& event : found->second.held) {
    const auto* stored = std::get_if<TrtllmStored>(&event.data);
    if (stored == nullptr) continue;
    for (const TrtllmBlock& block : stored->blocks)
      largest = std::max(largest, block.tokens.size());
  }
  return static_cast<uint32_t>(largest);
}

void TrtllmDecoder::Complain(std::string_view where, std::string_view problem) {
  if (counters_.malformed++ == 0) counters_.first_problem = fmt::format("{}: {}", where, problem);
}

void TrtllmDecoder::TakeOne(TrtllmEvent event, Output& out) {
  if (ranks_.size() >= kMaxRanks && !ranks_.contains(event.rank))
    return Complain("attention_dp_rank", "too many ranks");
  Rank& rank = ranks_[event.rank];
  Admit(rank, std::move(event), out);
}

void TrtllmDecoder::Admit(Rank& rank, TrtllmEvent event, Output& out) {
  const bool restarted = rank.begun && event.id < rank.last_id;
  const bool grown = event.window > rank.window && rank.stored;
  const bool wrong =
      rank.block_size > 0 && event.window >= rank.window && HasLargerBlock(event, rank.block_size);
  if (restarted) rank.window = 0;
  if (restarted || grown || wrong) StartAgain(rank, out);
  rank.begun = true;
  rank.last_id = event.id;

  if (event.window < rank.window && !IsBare(event)) {
    ++counters_.other_window;
    event.data = TrtllmOther{};
  }
  rank.window = std::max(rank.window, event.window);
  if (const auto* stored = std::get_if<TrtllmStored>(&event.data)) {
    rank.stored = true;
    if (rank.block_size == 0) Learn(rank, *stored);
  }
  if (rank.block_size > 0) Release(rank, out);
  const bool pass = rank.block_size > 0 || (rank.held.empty() && IsBare(event));
  if (pass) {
    Emit(rank, event, out);
  } else {
    Hold(rank, std::move(event));
  }
}

// The held events belong to the invalid past. Their numbers are still returned.
void TrtllmDecoder::StartAgain(Rank& rank, Output& out) {
  ++counters_.restarts;
  for (const TrtllmEvent& event : rank.held) out.push_back({event.id, event.rank, {}});
  const uint64_t window = rank.window;
  rank = Rank{};
  rank.window = window;
  rank.clear_due = true;
}

void TrtllmDecoder::Learn(Rank& rank, const TrtllmStored& stored) {
  size_t tokens = 0;
  if (stored.blocks.size() > 1) {
    tokens = stored.blocks.front().tokens.size();
  } else if (stored.parent) {
    for (const TrtllmEvent& held : rank.held)
      tokens = std::max(tokens, TokensOf(held, *stored.parent));
  }
  rank.block_size = static_cast<uint32_t>(tokens);
}

void TrtllmDecoder::Hold(Rank& rank, TrtllmEvent event) {
  rank.held_tokens += CountTokens(event);
  rank.held.push_back(std::move(event));
  while (rank.held.size() > kMaxHeldEvents || rank.held_tokens > kMaxHeldTokens) {
    rank.held_tokens -= CountTokens(rank.held.front());
    rank.held.pop_front();
    ++counters_.dropped;
  }
}

void TrtllmDecoder::Release(Rank& rank, Output& out) {
  for (TrtllmEvent& event : rank.held) Emit(rank, event, out);
  rank.held.clear();
  rank.held_tokens = 0;
}

void TrtllmDecoder::Emit(Rank& rank, TrtllmEvent& event, Output& out) {
  PolledEvent& polled = out.emplace_back(PolledEvent{event.id, event.rank, {}});
  if (std::exchange(rank.clear_due, false)) polled.events.emplace_back(ClearedEvent{});
  if (auto* stored = std::get_if<TrtllmStored>(&event.data)) {
    EmitStored(rank, event, *stored, polled.events);
  } else if (const auto* removed = std::get_if<TrtllmRemoved>(&event.data)) {
    EmitRemoved(rank, event, *removed, polled.events);
  } else if (const auto* moved = std::get_if<TrtllmMoved>(&event.data)) {
    EmitMoved(rank, event, *moved, polled.events);
  }
}

// One event per run of blocks on the same level.
void TrtllmDecoder::EmitStored(Rank& rank, const TrtllmEvent& event, TrtllmStored& stored,
                               std::vector<CacheEvent>& out) {
  if (!IsConsistent(rank, stored))
    return Complain(fmt::format("event {}", event.id), "a block that others follow is not full");
  std::optional<uint64_t> parent = stored.parent;
  StoredEvent* run = nullptr;
  for (TrtllmBlock& block : stored.blocks) {
    // A block is in one place: a block that is stored again is no longer where it was moved to.
    const auto place = rank.places.find(block.hash);
    if (place != rank.places.end() && place->second && *place->second != block.tier) {
      RemovedFrom(out, *place->second, event.group).hashes.push_back(block.hash);
      run = nullptr;
    }
    if (!Accept(rank, block)) {
      run = nullptr;  // the next block, if any, follows one that is not in the list
    } else {
      if (run == nullptr || run->tier != block.tier) {
        run = &std::get<StoredEvent>(out.emplace_back(StoredEvent{}));
        run->parent = parent;
        run->block_size = rank.block_size;
        run->tier = block.tier;
        run->group = event.group;
      }
      Append(*run, block);
    }
    parent = block.hash;
  }
}

// Only the last block of an event may be partial.
bool TrtllmDecoder::IsConsistent(const Rank& rank, const TrtllmStored& stored) {
  const size_t followed = stored.blocks.empty() ? 0 : stored.blocks.size() - 1;
  for (size_t i = 0; i < stored.blocks.size(); ++i) {
    const size_t tokens = stored.blocks[i].tokens.size();
    if (tokens > rank.block_size || (i < followed && tokens < rank.block_size)) return false;
  }
  return true;
}

// Whether the block is to be stored. Remembers what its removal will need.
bool TrtllmDecoder::Accept(Rank& rank, const TrtllmBlock& block) {
  const bool partial = block.tokens.size() < rank.block_size;
  if (partial) ++counters_.partial;
  if (!partial && block.tier == Tier::kDevice) {
    rank.places.erase(block.hash);
    return true;
  }
  if (rank.places.size() >= kMaxRemembered && !rank.places.contains(block.hash)) {
    if (!partial) ++counters_.untracked;
    return false;
  }
  if (partial) {
    rank.places[block.hash] = std::nullopt;
  } else {
    rank.places[block.hash] = block.tier;
  }
  return !partial;
}

void TrtllmDecoder::EmitRemoved(Rank& rank, const TrtllmEvent& event, const TrtllmRemoved& removed,
                                std::vector<CacheEvent>& out) {
  for (const uint64_t hash : removed.hashes) {
    std::optional<Tier> tier = Tier::kDevice;
    if (const auto place = rank.places.find(hash); place != rank.places.end()) {
      tier = place->second;
      rank.places.erase(place);
    }
    if (tier) RemovedFrom(out, *tier, event.group).hashes.push_back(hash);
  }
}

void TrtllmDecoder::EmitMoved(Rank& rank, const TrtllmEvent& event, const TrtllmMoved& moved,
                              std::vector<CacheEvent>& out) {
  const auto place = rank.places.find(moved.hash);
  if (place != rank.places.end() && !place->second) return;  // a partial block
  const bool device = moved.to == Tier::kDevice;
  if (!device && place == rank.places.end() && rank.places.size() >= kMaxRemembered) {
    ++counters_.untracked;
    RemovedFrom(out, moved.from, event.group).hashes.push_back(moved.hash);
    return;
  }
  ++counters_.moved;
  out.emplace_back(MovedEvent{moved.hash, moved.from, moved.to, event.group});
  if (device) {
    rank.places.erase(moved.hash);
  } else {
    rank.places[moved.hash] = moved.to;
  }
}

}  // namespace fathom
