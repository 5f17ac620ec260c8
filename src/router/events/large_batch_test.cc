#include "router/events/large_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace fathom {
namespace {

constexpr TimePoint kThen{std::chrono::seconds(1000)};

// --- just enough msgpack

std::string Sized(char type, size_t size) {
  std::string head(1, type);
  for (int shift = 24; shift >= 0; shift -= 8) head += static_cast<char>(size >> shift);
  return head;
}
std::string List(size_t size) { return Sized('\xdd', size); }
std::string Number(uint64_t value) {
  std::string bytes = Sized('\xcf', value >> 32);
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}
std::string Word(std::string_view text) {
  return static_cast<char>(0xa0 | text.size()) + std::string(text);
}
std::string Numbers(uint64_t first, size_t count, uint64_t step = 1) {
  std::string bytes = List(count);
  for (size_t i = 0; i < count; ++i) bytes += Number(first + i * step);
  return bytes;
}

struct Run {
  uint64_t first = 0;
  size_t blocks = 0;
  uint64_t parent = 0;        // 0: none
  size_t unnamed = 0;         // blocks without a hash
  size_t key_at = ~size_t{};  // the block with an extra key
};

std::string StoredBytes(const Run& run, size_t block_size) {
  std::string keys = List(run.blocks - run.unnamed);
  for (size_t i = run.unnamed; i < run.blocks; ++i) {
    keys += i == run.key_at ? List(1) + Number(77) : "\xc0";
  }
  return List(9) + Word("BlockStored") +
         Numbers(run.first + run.unnamed, run.blocks - run.unnamed) +
         (run.parent == 0 ? "\xc0" : Number(run.parent)) +
         Numbers(run.first, run.blocks * block_size) + Number(block_size) + "\xc0" + Word("GPU") +
         "\xc0" + keys;
}

std::string RemovedBytes(uint64_t first, size_t count) {
  return List(3) + Word("BlockRemoved") + Numbers(first, count) + Word("GPU");
}

std::string Wrapped(const std::vector<std::string>& events, uint32_t rank) {
  std::string bytes = List(3) + Number(5) + List(events.size());
  for (const std::string& event : events) bytes += event;
  return bytes + Number(rank);
}

// A rank that is fed at once or in steps.
struct Fed {
  void AtOnce(const std::string& payload) { feed.Apply(*DecodeEventBatch(payload), kThen); }

  LargeBatch::Step InSteps(const std::string& payload) {
    LargeBatch large(0, payload, budget);
    for (steps = 0;; ++steps) {
      const LargeBatch::Step step = large.Advance(feed, kThen);
      if (step == LargeBatch::Step::kChecked) {
        feed.Apply(EventBatch{.rank = large.head().rank}, kThen);
      }
      most_memory = std::max(most_memory, budget.used());
      if (step == LargeBatch::Step::kDone || step == LargeBatch::Step::kInvalid) return step;
    }
  }

  size_t Depth(uint64_t first, size_t blocks, size_t block_size) {
    std::vector<TokenId> tokens(blocks * block_size + 1);
    std::iota(tokens.begin(), tokens.end(), static_cast<TokenId>(first));
    CacheReader reader(index);
    const auto found = reader.Match(tokens, NamespaceSeed("", ""));
    return found.empty() ? 0 : found[0].tokens[0];
  }

  Fleet fleet{BreakerOptions{}};
  CacheIndex index{256 << 20, 7};
  Epochs::Seat seat{index.epochs()};
  FeedBoard board;
  std::shared_ptr<Worker> worker = *fleet.Add({.url = "http://a:1"});
  std::shared_ptr<FeedStatus> status = board.Open(worker->id(), 0, "here");
  RankFeed feed{index, seat, worker, status};
  ByteBudget budget{64 << 20};
  size_t steps = 0;
  size_t most_memory = 0;
};

TEST(LargeBatch, GivesTheSameIndexAsOneThatIsAppliedAtOnce) {
  const std::vector<std::string> batches = {
      Wrapped({StoredBytes({.first = 1, .blocks = 5000}, 4),
               StoredBytes({.first = 5001, .blocks = 3000, .parent = 5000}, 4)},
              2),
      Wrapped({StoredBytes({.first = 100'000, .blocks = 3000, .key_at = 2500}, 4),
               StoredBytes({.first = 200'000, .blocks = 3000, .unnamed = 10}, 4),
               StoredBytes({.first = 300'000, .blocks = 2500, .parent = 299'999}, 4), "\xc0"},
              2),
      Wrapped({RemovedBytes(3000, 4000), List(1) + Word("Unknown")}, 2)};
  Fed whole;
  Fed steps;
  for (const std::string& batch : batches) {
    whole.AtOnce(batch);
    EXPECT_EQ(steps.InSteps(batch), LargeBatch::Step::kDone);
    EXPECT_GT(steps.steps, 5u);
  }
  EXPECT_EQ(steps.status->dp_rank.load(), 2u);
  for (const auto& [name, number] :
       {std::pair("blocks", &FeedStatus::blocks), std::pair("stored", &FeedStatus::stored_blocks),
        std::pair("removed", &FeedStatus::removed_blocks),
        std::pair("parked", &FeedStatus::parked_blocks), std::pair("orphans", &FeedStatus::orphans),
        std::pair("conflicts", &FeedStatus::conflicts)}) {
    EXPECT_EQ(((*steps.status).*number).Get(), ((*whole.status).*number).Get()) << name;
  }
  for (const auto& [first, blocks] : {std::pair<uint64_t, size_t>{1, 5000}, {100'000, 3000}}) {
    EXPECT_EQ(steps.Depth(first, blocks, 4), whole.Depth(first, blocks, 4)) << first;
  }
  EXPECT_EQ(steps.Depth(1, 5000, 4), 4 * 2999u);
}

TEST(LargeBatch, CountsTheEventThatItHoldsDecoded) {
  Fed fed;
  fed.InSteps(Wrapped({StoredBytes({.first = 1, .blocks = 20'000}, 16)}, 0));
  EXPECT_GE(fed.most_memory, 20'000u * 16 * sizeof(TokenId));
  EXPECT_EQ(fed.budget.used(), 0u);
}

// Nothing looks into it, so that no event holds the loop.
TEST(LargeBatch, LeavesOutAnEventThatIsTooLarge) {
  const std::string nothing(kMaxEventBytes, '\xc0');
  const std::string batch = Wrapped({StoredBytes({.first = 1, .blocks = 10}, 4),
                                     List(2) + Word("Unknown") + List(nothing.size()) + nothing,
                                     StoredBytes({.first = 100, .blocks = 20}, 4)},
                                    0);
  Fed fed;
  EventBatchReader reader(batch);
  while (!*reader.Check(1 << 20)) continue;
  std::optional<CacheEvent> event;
  std::vector<bool> found;
  while (reader.Next(event)) found.push_back(event.has_value());
  EXPECT_EQ(found, std::vector({true, false, true}));
  const EventBatch whole = *DecodeEventBatch(batch);
  EXPECT_EQ(reader.head().malformed, 1u);
  EXPECT_EQ(whole.malformed, 1u);
  EXPECT_EQ(reader.head().first_problem, whole.first_problem);
  EXPECT_THAT(whole.first_problem, testing::HasSubstr("bytes, more than"));
  EXPECT_EQ(fed.InSteps(batch), LargeBatch::Step::kDone);
  EXPECT_EQ(fed.status->blocks.Get(), 30u);
}

TEST(LargeBatch, AppliesNothingOfABatchThatCannotBeRead) {
  Fed fed;
  const std::string batch = Wrapped({StoredBytes({.first = 1, .blocks = 5000}, 4)}, 0);
  EXPECT_EQ(fed.InSteps(batch.substr(0, batch.size() - 1)), LargeBatch::Step::kInvalid);
  EXPECT_EQ(fed.InSteps(batch + "\xc0"), LargeBatch::Step::kInvalid);
  EXPECT_EQ(fed.status->blocks.Get(), 0u);
}

}  // namespace
}  // namespace fathom
