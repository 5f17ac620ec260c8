#include "diagnose/sizing/what_if.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "testing/sizing_fixture.h"

namespace fathom {
namespace {

using std::chrono::seconds;

SizingCase Llama(EngineKind engine = EngineKind::kVllm) {
  return {.shape = ShapeOf("llama_3_1_70b"),
          .gpu = GpuOf("H100"),
          .layout = LayoutOf(engine, 4),
          .memory = {.fraction = 0.85},
          .workload = {.sequences = 60,
                       .max_sequences = 256,
                       .prompt_tokens = 5000,
                       .output_tokens = 400,
                       .new_tokens_per_second = 4000,
                       .requests_per_second = std::nullopt,
                       .between_turns = seconds(40)},
          .observed = std::nullopt};
}

SizingOutcome Of(const SizingCase& sizing, const WhatIf& change = {}) {
  auto outcome = Reckon(sizing, change);
  CHECK(outcome.has_value());
  return *std::move(outcome);
}

TEST(WhatIf, ChangesNothingWhereNothingChanges) {
  const SizingOutcome outcome = Of(Llama());
  const auto budget = ReckonBudget(ShapeOf("llama_3_1_70b"), GpuOf("H100"),
                                   LayoutOf(EngineKind::kVllm, 4), {.fraction = 0.85});
  EXPECT_EQ(outcome.budget.capacity, budget->capacity);
  EXPECT_EQ(outcome.demand.retained_tokens,
            static_cast<double>(budget->capacity.tokens) - 60 * 5200);
}

TEST(WhatIf, ALargerFractionAddsItsShareOfTheGpu) {
  const double before = static_cast<double>(Of(Llama()).budget.cache_bytes);
  const double after = static_cast<double>(Of(Llama(), {.fraction = 0.95}).budget.cache_bytes);
  EXPECT_NEAR(after - before, 0.1 * 79.1 * (1 << 30), 10);
}

TEST(WhatIf, Fp8AndFewerSequencesAndHostMemoryEachLetBlocksLiveLonger) {
  const double now = Of(Llama()).demand.in_time.value();
  EXPECT_GT(Of(Llama(), {.kv_dtype = KvDtype::kFp8}).demand.in_time.value(), now);
  EXPECT_GT(Of(Llama(), {.max_sequences = 30}).demand.in_time.value(), now);
  EXPECT_GT(Of(Llama(), {.fraction = 0.92}).demand.in_time.value(), now);
  const SizingOutcome host = Of(Llama(), {.host_bytes = uint64_t{64} << 30});
  EXPECT_GT(host.demand.in_time.value(), now);
  EXPECT_EQ(host.demand.host_tokens, static_cast<double>(uint64_t{64} << 30) / 81'920);
}

TEST(WhatIf, ScalesWhatTheEngineSaidAsItScalesTheArithmetic) {
  SizingCase sizing = Llama();
  sizing.observed =
      KvCapacity{.tokens = 300'000, .blocks = 18'750, .block_size = 16, .observed = true};
  EXPECT_EQ(Of(sizing).budget.capacity, *sizing.observed);
  EXPECT_EQ(Of(sizing, {.max_sequences = 10}).budget.capacity, *sizing.observed);
  const KvCapacity doubled = Of(sizing, {.kv_dtype = KvDtype::kFp8}).budget.capacity;
  EXPECT_NEAR(static_cast<double>(doubled.tokens), 600'000, 100);
  EXPECT_TRUE(doubled.observed);
}

TEST(WhatIf, GoesByTheCostOfATokenWhereTheArithmeticSaysThatItCannotRun) {
  SizingCase sizing = Llama();
  sizing.gpu = GpuOf("L4");
  sizing.observed = KvCapacity{.tokens = 1000, .blocks = 62, .block_size = 16, .observed = true};
  EXPECT_EQ(Of(sizing, {.kv_dtype = KvDtype::kFp8}).budget.capacity.tokens, 2000u);
}

TEST(WhatIf, BoundsSequencesByTheEngineWhereTheWorkloadDoesNot) {
  SizingCase sizing = Llama();
  sizing.workload.max_sequences = std::nullopt;
  sizing.memory.max_sequences = 10;
  EXPECT_EQ(Of(sizing).demand.active_tokens, 10 * 5200);
  EXPECT_EQ(Of(sizing, {.max_sequences = 20}).demand.active_tokens, 20 * 5200);
}

TEST(WhatIf, RefusesWhatNoEngineTakes) {
  EXPECT_FALSE(Reckon(Llama(), {.fraction = 1.1}).has_value());
  EXPECT_FALSE(Reckon(Llama(), {.kv_dtype = KvDtype::kFp8DsMla}).has_value());
}

// Neither less room nor fewer follow-ups in time.
bool AtLeastAsGood(const SizingOutcome& a, const SizingOutcome& b) {
  return a.demand.retained_tokens >= b.demand.retained_tokens &&
         a.demand.in_time.value() >= b.demand.in_time.value();
}

RC_GTEST_PROP(WhatIfProperty, MoreRoomNeverLosesMore, ()) {
  SizingCase sizing =
      Llama(*rc::gen::element(EngineKind::kVllm, EngineKind::kSglang, EngineKind::kTrtllm));
  sizing.layout.parallel.tensor = *rc::gen::element(2u, 4u, 8u, 16u);
  sizing.layout.parallel.pipeline = *rc::gen::inRange(1u, 5u);
  sizing.workload.sequences = *rc::gen::inRange(0, 400);
  sizing.workload.prompt_tokens = *rc::gen::inRange(0, 20'000);
  sizing.workload.new_tokens_per_second = *rc::gen::inRange(0, 50'000);
  sizing.workload.between_turns = seconds(*rc::gen::inRange(0, 600));
  if (*rc::gen::arbitrary<bool>()) {
    sizing.observed = KvCapacity{.tokens = *rc::gen::inRange<uint64_t>(0, 2'000'000),
                                 .blocks = 1,
                                 .block_size = 16,
                                 .observed = true};
  }

  const int less = *rc::gen::inRange(1, 100);
  const int more = *rc::gen::inRange(less, 101);
  const auto then = [&](const WhatIf& change) { return Of(sizing, change); };
  RC_ASSERT(AtLeastAsGood(then({.fraction = more / 100.0}), then({.fraction = less / 100.0})));
  RC_ASSERT(AtLeastAsGood(then({.host_bytes = uint64_t(more) << 30}),
                          then({.host_bytes = uint64_t(less) << 30})));
  RC_ASSERT(AtLeastAsGood(then({.max_sequences = uint64_t(less)}),
                          then({.max_sequences = uint64_t(more)})));
  RC_ASSERT(AtLeastAsGood(then({.kv_dtype = KvDtype::kFp8}), then({})));
  RC_ASSERT(AtLeastAsGood(then({.kv_dtype = KvDtype::kNvfp4}), then({.kv_dtype = KvDtype::kFp8})));
}

}  // namespace
}  // namespace fathom
