#include "diagnose/sizing/model_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "testing/sizing_fixture.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view config) {
  const auto shape = ParseModelShape(config);
  return shape ? "" : shape.error().what;
}

TEST(ModelShape, ReadsTheHeadsAndLayersOfLlama) {
  const ModelShape shape = ShapeOf("llama_3_1_70b");
  EXPECT_EQ(shape.architecture, "LlamaForCausalLM");
  EXPECT_EQ(shape.CountOf(LayerKind::kFull), 80u);
  EXPECT_EQ(shape.kv_heads, 8u);
  EXPECT_EQ(shape.head_dim, 128u);
  EXPECT_EQ(shape.v_head_dim, 128u);
  EXPECT_EQ(shape.context_length, 131072u);
  EXPECT_EQ(shape.AutoKvDtype(), KvDtype::kBfloat16);
  EXPECT_FALSE(shape.latent.has_value());
}

TEST(ModelShape, CountsTheParametersOfLlamaExactly) {
  const ModelShape shape = ShapeOf("llama_3_1_70b");
  EXPECT_EQ(shape.parameters.total(), 70'553'706'496.0);
  EXPECT_EQ(shape.WeightBytes(), 2 * 70'553'706'496.0);
}

TEST(ModelShape, CountsTheParametersOfMixturesWithinOnePercentOfWhatIsPublished) {
  EXPECT_NEAR(ShapeOf("mixtral_8x7b").parameters.total() / 46.7e9, 1, 0.01);
  EXPECT_NEAR(ShapeOf("deepseek_v3").parameters.total() / 671.0e9, 1, 0.01);
  EXPECT_NEAR(ShapeOf("gpt_oss_20b").parameters.total() / 20.9e9, 1, 0.01);
  EXPECT_NEAR(ShapeOf("gemma_3_27b").parameters.total() / 27.0e9, 1, 0.01);
}

TEST(ModelShape, WeighsQuantizedWeightsByTheirOwnType) {
  // Experts in 4.25 bits, the rest in 16.
  EXPECT_NEAR(ShapeOf("gpt_oss_20b").WeightBytes() / 13.76e9, 1, 0.01);
  const ModelShape deepseek = ShapeOf("deepseek_v3");
  EXPECT_EQ(deepseek.quantization, "fp8");
  EXPECT_NEAR(deepseek.WeightBytes() / 673e9, 1, 0.01);
  EXPECT_EQ(deepseek.AutoKvDtype(), KvDtype::kBfloat16);
}

TEST(ModelShape, TakesTheTypeOfTheCacheFromACheckpointThatWasQuantizedForIt) {
  const ModelShape shape = ShapeOf("llama_3_1_8b_fp8");
  EXPECT_EQ(shape.AutoKvDtype(), KvDtype::kFp8);
  EXPECT_EQ(shape.dense_bytes_per_parameter, 1);
}

TEST(ModelShape, ReadsLatentAttentionAndItsIndexer) {
  const ModelShape v3 = ShapeOf("deepseek_v3");
  EXPECT_EQ(v3.latent, (LatentAttention{.rank = 512, .rope_dim = 64, .index_head_dim = 0}));
  const ModelShape sparse = ShapeOf("deepseek_v3_2");
  EXPECT_EQ(sparse.latent, (LatentAttention{.rank = 512, .rope_dim = 64, .index_head_dim = 128}));
}

TEST(ModelShape, KnowsWindowsByTheListOfLayers) {
  const ModelShape shape = ShapeOf("gpt_oss_20b");
  EXPECT_EQ(shape.CountOf(LayerKind::kWindow), 12u);
  EXPECT_EQ(shape.CountOf(LayerKind::kFull), 12u);
  EXPECT_EQ(shape.layers[0], LayerKind::kWindow);
  EXPECT_EQ(shape.window, 128u);
}

TEST(ModelShape, KnowsWindowsByTheTypeOfTheModelInItsLanguagePart) {
  const ModelShape shape = ShapeOf("gemma_3_27b");
  ASSERT_EQ(shape.layers.size(), 62u);
  EXPECT_EQ(shape.CountOf(LayerKind::kFull), 10u);  // every sixth
  EXPECT_EQ(shape.layers[5], LayerKind::kFull);
  EXPECT_EQ(shape.window, 1024u);
  EXPECT_EQ(shape.kv_heads, 16u);
}

TEST(ModelShape, CountsLayersThatKeepAStateApart) {
  const ModelShape shape = ShapeOf("qwen3_next_80b");
  EXPECT_EQ(shape.CountOf(LayerKind::kFull), 12u);
  EXPECT_EQ(shape.CountOf(LayerKind::kState), 36u);
  EXPECT_EQ(shape.parameters.total(), 0);  // what such a layer weighs is not known
}

struct Pattern {
  const char* name;
  const char* fields;
  const char* kinds;  // a letter for each of four layers
};

class LayerPatterns : public testing::TestWithParam<Pattern> {};

TEST_P(LayerPatterns, AreReadFromTheFieldsOfTheirModels) {
  std::string config = R"({"num_hidden_layers": 4, "num_attention_heads": 4, "hidden_size": 64, )";
  const auto shape = ParseModelShape(config.append(GetParam().fields).append("}"));
  ASSERT_TRUE(shape.has_value()) << shape.error().what;
  std::string kinds;
  for (const LayerKind kind : shape->layers) kinds += "FWS"[static_cast<size_t>(kind)];
  EXPECT_EQ(kinds, GetParam().kinds);
}

INSTANTIATE_TEST_SUITE_P(
    All, LayerPatterns,
    testing::Values(
        Pattern{"None", R"("model_type": "llama")", "FFFF"},
        Pattern{"AllWindows", R"("sliding_window": 4096)", "WWWW"},
        Pattern{"SwitchedOff", R"("sliding_window": 4096, "use_sliding_window": false)", "FFFF"},
        Pattern{"FullFirst",
                R"("sliding_window": 8, "use_sliding_window": true, "max_window_layers": 3)",
                "FFFW"},
        Pattern{"Alternating", R"("sliding_window": 8, "model_type": "gemma2")", "WFWF"},
        Pattern{"Chunks", R"("attention_chunk_size": 8, "no_rope_layers": [1, 1, 0, 1])", "WWFW"},
        Pattern{"ListWithoutWindow",
                R"("layer_types": ["sliding_attention", "full_attention",
                   "sliding_attention", "full_attention"])",
                "FFFF"},
        Pattern{"Letters", R"("hybrid_override_pattern": "M-*M")", "SSFS"},
        Pattern{"Blocks", R"("layers_block_type": ["mamba", "attention", "mamba", "mamba"])",
                "SFSS"},
        Pattern{"Indices", R"("attn_layer_indices": [2, 99])", "SSFS"},
        Pattern{"Offset", R"("attn_layer_period": 2, "attn_layer_offset": 1)", "SFSF"},
        Pattern{"Flags", R"("attn_type_list": [0, 0, 0, 1])", "SSSF"},
        Pattern{"AllStates", R"("model_type": "mamba2")", "SSSS"}),
    [](const auto& pattern) { return pattern.param.name; });

TEST(ModelShape, ReadsWhatPythonWritesForNumbersWithoutAnEnd) {
  const auto shape = ParseModelShape(
      R"({"time_step_limit": [0.0, Infinity, -Infinity, NaN], "note": "\"Infinity",
          "num_hidden_layers": 2, "n_head": 2, "head_dim": 8})");
  ASSERT_TRUE(shape.has_value()) << shape.error().what;
  EXPECT_EQ(shape->head_dim, 8u);
}

TEST(ModelShape, NamesTheFieldThatIsMissingOrMakesNoSense) {
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("num_hidden_layers is missing"));
  EXPECT_THAT(ErrorOf(R"({"num_hidden_layers": 2})"), HasSubstr("num_attention_heads is missing"));
  EXPECT_THAT(ErrorOf(R"({"num_hidden_layers": 2, "num_attention_heads": 8})"),
              HasSubstr("head_dim is missing"));
  EXPECT_THAT(ErrorOf(R"({"num_hidden_layers": -2})"),
              HasSubstr("num_hidden_layers is -2, a number from 0 to 4096 is needed"));
  EXPECT_THAT(ErrorOf(R"({"num_hidden_layers": "many"})"), HasSubstr("num_hidden_layers is"));
  EXPECT_THAT(ErrorOf(R"({"num_hidden_layers": 1000000000})"), HasSubstr("4096"));
  EXPECT_THAT(ErrorOf(R"({"num_hidden_layers": 2, "num_attention_heads": 8, "head_dim": 8,
                          "num_key_value_heads": 0})"),
              HasSubstr("num_key_value_heads is 0"));
  EXPECT_THAT(ErrorOf(R"({"num_hidden_layers": 2, "kv_lora_rank": 512})"),
              HasSubstr("qk_rope_head_dim is missing"));
  EXPECT_THAT(ErrorOf(R"({"num_hidden_layers": 3, "layer_types": ["full_attention"]})"),
              HasSubstr("layer_types must have a name for each of 3 layers"));
  EXPECT_THAT(ErrorOf(R"({"num_hidden_layers": 1, "layer_types": ["astral"]})"),
              HasSubstr("layer_types[0]"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("a JSON object is needed"));
  EXPECT_NE(ErrorOf("{\"num_hidden_layers\": "), "");
}

TEST(ModelShape, TakesTheSizeOfTheWeightsFromTheIndexBesideTheConfig) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "fathom_model_shape_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << SizingData("llama_3_1_70b.json");
  std::ofstream(folder / "model.safetensors.index.json")
      << R"({"metadata": {"total_size": 141107412992}, "weight_map": {}})";
  for (const auto& path : {folder, folder / "config.json"}) {
    const auto shape = ReadModelShape(path.string());
    ASSERT_TRUE(shape.has_value()) << shape.error().what;
    EXPECT_EQ(shape->weight_bytes, 141107412992u);
  }
  std::ofstream(folder / "model.safetensors.index.json") << R"({"metadata": {}})";
  const auto without = ReadModelShape(folder.string());
  ASSERT_FALSE(without.has_value());
  EXPECT_THAT(without.error().what, HasSubstr("metadata.total_size"));
  std::filesystem::remove_all(folder);
  EXPECT_THAT(ReadModelShape(folder.string()).error().what, HasSubstr("fathom_model_shape_test"));
}

}  // namespace
}  // namespace fathom
