#include "diagnose/sizing/kv_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/sizing_fixture.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;

// On one GPU of the costliest stage.
KvCost CostPerGpu(const KvLayout& layout, const ModelShape& shape) {
  KvCost most;
  for (const Stage& stage : StagesOf(layout, shape)) {
    const KvCost cost = CostOf(stage, layout, shape);
    if (cost.BytesPerToken() >= most.BytesPerToken()) most = cost;
  }
  return most;
}

uint64_t BytesPerToken(const ModelShape& shape, uint32_t tensor, KvDtype dtype = KvDtype::kBfloat16,
                       uint32_t pipeline = 1) {
  KvLayout layout = LayoutOf(EngineKind::kVllm, tensor);
  layout.dtype = dtype;
  layout.parallel.pipeline = pipeline;
  CHECK(Check(layout, shape).has_value());
  return CostPerGpu(layout, shape).BytesPerToken();
}

TEST(KvCost, OfLlamaIsDividedByTensorParallelismUntilHeadsRunOut) {
  const ModelShape shape = ShapeOf("llama_3_1_70b");
  EXPECT_EQ(BytesPerToken(shape, 1), 327'680u);
  EXPECT_EQ(BytesPerToken(shape, 4), 81'920u);
  EXPECT_EQ(BytesPerToken(shape, 8), 40'960u);
  EXPECT_EQ(BytesPerToken(shape, 16), 40'960u);
}

TEST(KvCost, FollowsTheTypeOfTheCache) {
  const ModelShape shape = ShapeOf("llama_3_1_70b");
  EXPECT_EQ(BytesPerToken(shape, 4, KvDtype::kFp8), 40'960u);
  EXPECT_EQ(BytesPerToken(shape, 4, KvDtype::kInt8), 40'960u);
  EXPECT_EQ(BytesPerToken(shape, 4, KvDtype::kFloat32), 163'840u);
  EXPECT_EQ(BytesPerToken(shape, 4, KvDtype::kNvfp4), 40'960u / 16 * 9);
  EXPECT_EQ(BytesPerToken(shape, 4, KvDtype::kMxfp8), 40'960u / 32 * 33);
}

TEST(KvCost, OfLatentAttentionIsTheSameOnEveryGpu) {
  const ModelShape shape = ShapeOf("deepseek_v3");
  EXPECT_EQ(BytesPerToken(shape, 1), 70'272u);
  EXPECT_EQ(BytesPerToken(shape, 8), 70'272u);
  EXPECT_EQ(BytesPerToken(shape, 8, KvDtype::kFp8), 35'136u);
  EXPECT_EQ(BytesPerToken(shape, 8, KvDtype::kFp8DsMla), 61u * 656);
}

TEST(KvCost, OfSparseAttentionHasItsIndexerToo) {
  const ModelShape shape = ShapeOf("deepseek_v3_2");
  EXPECT_EQ(BytesPerToken(shape, 8, KvDtype::kFp8DsMla), 61u * (656 + 132));
}

TEST(KvCost, IsThatOfTheFullestPipelineStage) {
  EXPECT_EQ(BytesPerToken(ShapeOf("llama_3_1_70b"), 4, KvDtype::kBfloat16, 2), 40'960u);
  EXPECT_EQ(BytesPerToken(ShapeOf("deepseek_v3"), 1, KvDtype::kBfloat16, 4), 16u * 576 * 2);
}

TEST(KvCost, OfDataParallelAttentionIsSpreadOverFewerGpus) {
  const ModelShape shape = ShapeOf("llama_3_1_70b");
  KvLayout layout = LayoutOf(EngineKind::kSglang, 8);
  layout.parallel.data = 4;
  EXPECT_EQ(layout.AttentionWays(), 8u);
  layout.parallel.attention_data = true;
  EXPECT_EQ(layout.AttentionWays(), 2u);
  EXPECT_EQ(CostPerGpu(layout, shape).BytesPerToken(), 163'840u);
  layout.engine = EngineKind::kTrtllm;
  EXPECT_EQ(layout.AttentionWays(), 1u);
  EXPECT_EQ(CostPerGpu(layout, shape).BytesPerToken(), 327'680u);
}

TEST(KvCost, OfWindowsStopsGrowingAtTheWindow) {
  const ModelShape shape = ShapeOf("gpt_oss_20b");
  KvLayout layout = LayoutOf(EngineKind::kVllm, 1);
  const KvCost cost = CostPerGpu(layout, shape);
  const uint64_t layer = 8 * (64 + 64) * 2;
  EXPECT_EQ(cost.full_bytes, 12 * layer);
  EXPECT_EQ(cost.window_bytes, 12 * layer);
  EXPECT_EQ(cost.ContextBytes(100), 24.0 * layer * 100);
  EXPECT_EQ(cost.ContextBytes(10'000), 12.0 * layer * (10'000 + 128));
  layout.whole_windows = true;
  EXPECT_EQ(CostPerGpu(layout, shape).ContextBytes(10'000), 24.0 * layer * 10'000);
  EXPECT_EQ(CostPerGpu(layout, shape).window, 0u);
}

TEST(KvCost, OfLayersWithAStateIsNothingPerToken) {
  const KvCost cost = CostPerGpu(LayoutOf(EngineKind::kVllm, 1), ShapeOf("qwen3_next_80b"));
  EXPECT_EQ(cost.state_layers, 36u);
  EXPECT_EQ(cost.BytesPerToken(), 12u * 2 * 512 * 2);
}

TEST(KvLayout, ThatCannotBeIsRefusedWithItsNumbers) {
  const ModelShape shape = ShapeOf("llama_3_1_70b");
  const auto refused = [&](const auto& change) {
    KvLayout layout = LayoutOf(EngineKind::kSglang, 8);
    change(layout);
    const auto checked = Check(layout, shape);
    return checked ? std::string() : checked.error().what;
  };
  EXPECT_EQ(refused([](KvLayout&) {}), "");
  EXPECT_THAT(refused([](KvLayout& l) { l.parallel.tensor = 0; }), HasSubstr("tensor"));
  EXPECT_THAT(refused([](KvLayout& l) { l.parallel.data = 5000; }), HasSubstr("5000"));
  EXPECT_THAT(refused([](KvLayout& l) { l.parallel.pipeline = 81; }), HasSubstr("80 layers"));
  EXPECT_THAT(refused([](KvLayout& l) {
                l.parallel.data = 3;
                l.parallel.attention_data = true;
              }),
              HasSubstr("divides"));
  EXPECT_THAT(refused([](KvLayout& l) { l.dtype = KvDtype::kFp8DsMla; }), HasSubstr("latent"));
}

TEST(KvDtype, GoesByTheWordsOfTheEngines) {
  EXPECT_EQ(ParseKvDtype("auto").value(), std::nullopt);
  EXPECT_EQ(ParseKvDtype("fp8_e5m2").value(), KvDtype::kFp8);
  EXPECT_EQ(ParseKvDtype("BF16").value(), KvDtype::kBfloat16);
  EXPECT_EQ(ParseKvDtype("fp4_e2m1").value(), KvDtype::kNvfp4);
  EXPECT_THAT(ParseKvDtype("fp7").error().what, HasSubstr("fp7"));
  for (const KvDtype dtype :
       {KvDtype::kFloat32, KvDtype::kBfloat16, KvDtype::kFloat16, KvDtype::kFp8, KvDtype::kInt8,
        KvDtype::kMxfp8, KvDtype::kNvfp4, KvDtype::kFp8DsMla}) {
    EXPECT_EQ(ParseKvDtype(Name(dtype)).value(), dtype);
  }
}

}  // namespace
}  // namespace fathom
