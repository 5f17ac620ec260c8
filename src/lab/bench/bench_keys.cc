#include "lab/bench/bench_keys.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "base/exit_status.h"
#include "base/random.h"
#include "codec/json.h"
#include "lab/bench/bench_settings.h"
#include "text/tokens/key_chain.h"

namespace fathom {
namespace {

constexpr std::string_view kKeysUsage =
    "usage: fathom bench keys [tokens=131072] [block-size=16] [runs=500]\n";

struct KeysBenchPlan {
  uint64_t tokens = 131072;
  uint64_t block_size = 16;
  uint64_t runs = 500;
};

// What the compiler must not leave out.
volatile uint64_t sink;

// The shortest of several.
template <class Work>
Duration Shortest(uint64_t runs, Work work) {
  Duration best = Duration::max();
  for (uint64_t run = 0; run < runs; ++run) {
    const TimePoint begun = std::chrono::steady_clock::now();
    sink = work();
    best = std::min<Duration>(best, std::chrono::steady_clock::now() - begun);
  }
  return best;
}

std::string KeysReportOf(const KeysBenchPlan& plan) {
  std::vector<TokenId> tokens(plan.tokens);
  Random random(1);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random.Below(128'000));
  const BlockShape shape{.size = static_cast<uint32_t>(plan.block_size)};
  std::vector<uint64_t> storage;
  const Duration keys = Shortest(plan.runs, [&] {
    const auto all = KeyChain(tokens, shape, kKeySeed, storage).All();
    return all.empty() ? 0 : all.back();
  });
  std::vector<uint64_t> locals;
  for (size_t i = 0; i < shape.BlocksIn(tokens.size()); ++i) {
    locals.push_back(LocalHash(shape.Block(tokens, i), kKeySeed));
  }
  const Duration chain = Shortest(plan.runs, [&] {
    const auto all = KeyChain(locals, storage).All();
    return all.empty() ? 0 : all.back();
  });
  const size_t bytes = tokens.size() * sizeof(TokenId);
  const Duration whole = Shortest(plan.runs, [&] { return XXH3_64bits(tokens.data(), bytes); });
  std::vector<TokenId> copy(tokens.size());
  const Duration copying = Shortest(plan.runs, [&] {
    std::memcpy(copy.data(), tokens.data(), bytes);
    return copy.back();
  });
  JsonWriter w;
  w.BeginObject().Key("tokens").Unsigned(plan.tokens).Key("block_size").Unsigned(plan.block_size);
  w.Key("keys_microseconds").Number(Seconds(keys) * 1e6);
  w.Key("tokens_per_second").Number(static_cast<double>(plan.tokens) / Seconds(keys));
  w.Key("chaining_microseconds").Number(Seconds(chain) * 1e6);
  w.Key("one_hash_microseconds").Number(Seconds(whole) * 1e6);
  w.Key("copy_microseconds").Number(Seconds(copying) * 1e6);
  w.Key("times_one_hash").Number(Seconds(keys) / Seconds(whole));
  w.EndObject();
  return w.Take();
}

}  // namespace

int RunBenchKeys(std::span<const std::string_view> args) {
  KeysBenchPlan plan;
  constexpr double kMost = 1 << 28;
  const BenchSetting settings[] = {{"tokens", &plan.tokens, 1, kMost},
                                   {"block-size", &plan.block_size, 1, kMost},
                                   {"runs", &plan.runs, 1, kMost}};
  if (const auto set = ReadSettings(args, settings); !set) {
    return RefuseBench(set.error().what, kKeysUsage);
  }
  fmt::print("{}\n", KeysReportOf(plan));
  return kExitFine;
}

}  // namespace fathom
