#include "diagnose/sizing/kv_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/sizing/binary_units.h"
#include "testing/sizing_fixture.h"

namespace fathom {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

KvBudget Budget(std::string_view model, std::string_view gpu, const KvLayout& layout,
                const EngineMemory& memory = {}, uint64_t context = 0) {
  auto budget = ReckonBudget(ShapeOf(model), GpuOf(gpu), layout, memory, context);
  CHECK(budget.has_value());
  return *std::move(budget);
}

KvBudget LlamaBudget(EngineKind engine, const EngineMemory& memory = {}) {
  return Budget("llama_3_1_70b", "H100", LayoutOf(engine, 4), memory);
}

void ExpectNear(const KvBudget& budget, double gib, double tokens, double blocks) {
  EXPECT_NEAR(static_cast<double>(budget.cache_bytes) / kGiB / gib, 1, 0.01) << budget.formula;
  EXPECT_NEAR(static_cast<double>(budget.capacity.tokens) / tokens, 1, 0.01);
  EXPECT_NEAR(static_cast<double>(budget.capacity.blocks) / blocks, 1, 0.01);
  EXPECT_EQ(budget.cost.BytesPerToken(), 81'920u);
  EXPECT_NEAR(static_cast<double>(budget.weight_bytes) / kGiB, 32.85, 0.01);
}

TEST(KvBudget, OfVllmIsTheWorkedExample) {
  const KvBudget budget = LlamaBudget(EngineKind::kVllm);
  EXPECT_EQ(budget.fraction, 0.92);
  EXPECT_EQ(budget.capacity.block_size, 16u);
  ExpectNear(budget, 35.92, 470'800, 29'423);
  ExpectNear(LlamaBudget(EngineKind::kVllm, {.fraction = 0.9}), 34.34, 450'000, 28'127);
}

TEST(KvBudget, OfVllmFollowsTheOverheadThatWasMeasured) {
  const auto tokens = [](double overhead) {
    return static_cast<double>(
        LlamaBudget(EngineKind::kVllm, {.overhead = static_cast<uint64_t>(overhead * kGiB)})
            .capacity.tokens);
  };
  EXPECT_NEAR(tokens(2) / 497'000, 1, 0.01);
  EXPECT_NEAR(tokens(6) / 445'000, 1, 0.01);
}

TEST(KvBudget, OfSglangIsTheWorkedExample) {
  const KvBudget budget = LlamaBudget(EngineKind::kSglang);
  EXPECT_EQ(budget.fraction, 0.824);
  EXPECT_EQ(budget.capacity.block_size, 1u);
  ExpectNear(budget, 31.3, 410'600, 410'600);
}

TEST(KvBudget, OfSglangIsWholePages) {
  const KvBudget budget = LlamaBudget(EngineKind::kSglang, {.block_size = 64});
  EXPECT_EQ(budget.capacity.tokens % 64, 0u);
  EXPECT_EQ(budget.capacity.tokens, budget.capacity.blocks * 64);
}

TEST(KvBudget, OfTensorRtIsTheWorkedExample) {
  const KvBudget budget = LlamaBudget(EngineKind::kTrtllm);
  EXPECT_EQ(budget.fraction, 0.9);
  EXPECT_EQ(budget.capacity.block_size, 32u);
  ExpectNear(budget, 37.6, 492'500, 15'389);
}

TEST(KvBudget, InFp8HoldsTwiceTheTokens) {
  for (const EngineKind engine : {EngineKind::kVllm, EngineKind::kSglang, EngineKind::kTrtllm}) {
    KvLayout layout = LayoutOf(engine, 4);
    layout.dtype = KvDtype::kFp8;
    const double twice =
        static_cast<double>(Budget("llama_3_1_70b", "H100", layout).capacity.tokens);
    EXPECT_NEAR(twice / static_cast<double>(LlamaBudget(engine).capacity.tokens), 2, 0.001);
  }
}

TEST(KvBudget, NamesEveryNumberThatItAssumed) {
  const KvBudget budget = LlamaBudget(EngineKind::kVllm);
  const auto named = [](const char* name) { return Contains(Field(&Assumption::name, name)); };
  EXPECT_THAT(budget.assumptions, named("overhead"));
  EXPECT_THAT(budget.assumptions, named("visible-memory"));
  EXPECT_THAT(budget.assumptions, named("fraction"));
  EXPECT_THAT(budget.assumptions, named("weights"));
  EXPECT_THAT(budget.assumptions, Contains(Field(&Assumption::words, HasSubstr("4.00 GiB"))));
  EXPECT_THAT(budget.formula, HasSubstr("79.10 GiB x 0.92 - 32.85 GiB weights"));

  ModelShape known = ShapeOf("llama_3_1_70b");
  known.weight_bytes = 141'107'412'992;
  const auto stated = ReckonBudget(known, GpuOf("H100"), LayoutOf(EngineKind::kVllm, 4),
                                   {.fraction = 0.92, .overhead = uint64_t{4} << 30});
  ASSERT_TRUE(stated.has_value());
  EXPECT_EQ(stated->assumptions.size(), 1u);  // the memory that a program sees
  EXPECT_EQ(stated->capacity.tokens, budget.capacity.tokens);
}

TEST(KvBudget, SaysByHowMuchAModelDoesNotFit) {
  const KvBudget budget = Budget("llama_3_1_70b", "H100", LayoutOf(EngineKind::kVllm, 1));
  EXPECT_EQ(budget.cache_bytes, 0u);
  EXPECT_EQ(budget.capacity.tokens, 0u);
  EXPECT_NEAR(static_cast<double>(budget.missing_bytes) / kGiB, 131.42 + 4 - 72.77, 0.02);
}

TEST(KvBudget, OfAPipelineIsThatOfTheStageWithTheLeastRoom) {
  KvLayout layout = LayoutOf(EngineKind::kVllm, 1);
  layout.parallel.pipeline = 3;  // 27, 27 and 26 layers; the first with the embedding
  const KvBudget budget = Budget("llama_3_1_70b", "H100", layout);
  EXPECT_EQ(budget.cost.BytesPerToken(), 27u * 4096);
  EXPECT_NEAR(static_cast<double>(budget.weight_bytes),
              2 * (68'452'360'192.0 * 27 / 80 + 1'050'673'152.0), 1e6);
}

TEST(KvBudget, ObeysWhatTheOperatorSet) {
  const uint64_t ten = uint64_t{10} << 30;
  EXPECT_EQ(LlamaBudget(EngineKind::kVllm, {.cache_bytes = ten}).cache_bytes, ten);
  EXPECT_EQ(LlamaBudget(EngineKind::kTrtllm, {.cache_bytes = ten}).cache_bytes, ten);
  EXPECT_EQ(LlamaBudget(EngineKind::kTrtllm, {.cache_bytes = 100 * ten}).cache_bytes,
            LlamaBudget(EngineKind::kTrtllm).cache_bytes);
  EXPECT_EQ(LlamaBudget(EngineKind::kTrtllm, {.max_tokens = 65'536}).capacity.tokens, 65'536u);
}

TEST(KvBudget, OfWindowsHoldsMoreTokensTheLongerContextsAre) {
  const KvLayout layout = LayoutOf(EngineKind::kVllm, 1);
  const KvBudget brief = Budget("gpt_oss_20b", "H100", layout, {}, 100);
  const KvBudget lengthy = Budget("gpt_oss_20b", "H100", layout, {}, 100'000);
  const double ratio =
      static_cast<double>(lengthy.capacity.tokens) / static_cast<double>(brief.capacity.tokens);
  EXPECT_NEAR(ratio, 2 * 100'000 / 100'128.0, 0.001);
  EXPECT_THAT(brief.assumptions, Contains(Field(&Assumption::name, "context-length")));
}

TEST(KvBudget, SpreadsExpertsAndCopiesAttentionAsTheLayoutSays) {
  KvLayout layout = LayoutOf(EngineKind::kSglang, 8);
  const uint64_t split = Budget("deepseek_v3", "H200", layout).weight_bytes;
  EXPECT_NEAR(static_cast<double>(split), ShapeOf("deepseek_v3").WeightBytes() / 8, 1e6);
  layout.parallel.data = 8;
  layout.parallel.attention_data = true;
  const ModelShape shape = ShapeOf("deepseek_v3");
  EXPECT_NEAR(static_cast<double>(Budget("deepseek_v3", "H200", layout).weight_bytes - split),
              shape.parameters.attention * 7 / 8, 1e6);

  KvLayout spread = LayoutOf(EngineKind::kVllm, 1);
  spread.parallel.data = 8;
  spread.parallel.expert_parallel = true;
  EXPECT_LT(Budget("deepseek_v3", "H200", spread).weight_bytes,
            split + uint64_t{20} * 1'000'000'000);
}

TEST(KvBudget, RefusesWhatItCannotReckon) {
  const auto error = [](const ModelShape& shape, const KvLayout& layout,
                        const EngineMemory& memory) {
    const auto budget = ReckonBudget(shape, GpuOf("H100"), layout, memory);
    return budget ? std::string() : budget.error().what;
  };
  const ModelShape llama = ShapeOf("llama_3_1_70b");
  EXPECT_THAT(error(llama, LayoutOf(EngineKind::kUnknown, 1), {}), HasSubstr("engine"));
  EXPECT_THAT(error(llama, LayoutOf(EngineKind::kVllm, 1), {.fraction = 1.5}), HasSubstr("1.5"));
  EXPECT_THAT(error(llama, LayoutOf(EngineKind::kVllm, 1), {.block_size = 0}), HasSubstr("block"));
  EXPECT_THAT(error(ShapeOf("qwen3_next_80b"), LayoutOf(EngineKind::kVllm, 1), {}),
              HasSubstr("model.safetensors.index.json"));
  ModelShape mamba = llama;
  mamba.layers.assign(4, LayerKind::kState);
  EXPECT_THAT(error(mamba, LayoutOf(EngineKind::kVllm, 1), {}), HasSubstr("has a KV cache"));
}

TEST(KvBudget, OfAModelBeyondAllMeasureIsOneThatDoesNotFit) {
  const auto shape = ParseModelShape(
      R"({"num_hidden_layers": 4096, "num_attention_heads": 65536, "head_dim": 65536,
          "hidden_size": 16777216, "intermediate_size": 16777216, "vocab_size": 16777216,
          "num_experts": 16777216})");
  ASSERT_TRUE(shape.has_value()) << shape.error().what;
  const auto budget = ReckonBudget(*shape, GpuOf("H100"), LayoutOf(EngineKind::kVllm, 1), {});
  ASSERT_TRUE(budget.has_value()) << budget.error().what;
  EXPECT_EQ(budget->capacity.tokens, 0u);
  EXPECT_GT(budget->missing_bytes, uint64_t{1} << 50);
}

TEST(KvBudget, OfAHybridModelSaysWhatItLeavesOut) {
  ModelShape shape = ShapeOf("qwen3_next_80b");
  shape.weight_bytes = 162'000'000'000;
  const auto budget = ReckonBudget(shape, GpuOf("H200"), LayoutOf(EngineKind::kVllm, 2), {});
  ASSERT_TRUE(budget.has_value());
  EXPECT_EQ(budget->weight_bytes, 81'000'000'000u);
  EXPECT_THAT(budget->assumptions, Contains(Field(&Assumption::name, "state-layers")));
  EXPECT_THAT(budget->assumptions, Not(Contains(Field(&Assumption::name, "weights"))));
}

TEST(KvCapacity, IsWhatTheEngineSaysItself) {
  const auto capacity = CapacityFrom({.num_blocks = 29'423, .kv_tokens = 470'768, .block_size = 16},
                                     EngineKind::kVllm);
  ASSERT_TRUE(capacity.has_value());
  EXPECT_EQ(capacity->tokens, 470'768u);
  EXPECT_EQ(capacity->blocks, 29'423u);
  EXPECT_TRUE(capacity->observed);
}

TEST(KvCapacity, IsReckonedFromBlocksWhereTokensAreNotSaid) {
  const ObservedCapacity said{.num_blocks = 1001, .kv_tokens = 0, .block_size = 16};
  EXPECT_EQ(CapacityFrom(said, EngineKind::kVllm)->tokens, 16'000u);
  EXPECT_EQ(CapacityFrom(said, EngineKind::kTrtllm)->tokens, 16'016u);
  EXPECT_EQ(CapacityFrom({.num_blocks = 5, .kv_tokens = 0, .block_size = 0}, EngineKind::kVllm),
            std::nullopt);
  EXPECT_EQ(CapacityFrom({.num_blocks = ~uint64_t{0}, .kv_tokens = 0, .block_size = 16},
                         EngineKind::kVllm),
            std::nullopt);
}

TEST(BytesText, IsWhatPeopleRead) {
  EXPECT_EQ(BytesText(81'920), "81,920 B");
  EXPECT_EQ(BytesText(999), "999 B");
  EXPECT_EQ(BytesText(1'310'720), "1.25 MiB");
  EXPECT_EQ(BytesText(uint64_t{4} << 30), "4.00 GiB");
}

}  // namespace
}  // namespace fathom
