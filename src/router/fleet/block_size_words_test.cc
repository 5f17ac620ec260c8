#include "router/fleet/block_size_words.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace fathom {
namespace {

using Kind = SizeRemark::Kind;

TEST(BlockSizeWords, AreThoseThatUsersAskedFor) {
  SizeRemark remark{
      .kind = Kind::kMismatch, .engine = EngineKind::kTrtllm, .size = 32, .other = 16};
  remark.setting.name = "DYN_KV_CACHE_BLOCK_SIZE";
  EXPECT_EQ(WordsOf(remark),
            "Frontend KV block size (16) does not match worker block size (32).\n"
            "Set DYN_KV_CACHE_BLOCK_SIZE=32 on the frontend or configure tokens_per_block=16 on "
            "workers.\n"
            "KV-aware routing will not function until block sizes match.");
  remark.engine = EngineKind::kVllm;
  EXPECT_NE(WordsOf(remark).find("or configure --block-size 16 on workers."), std::string::npos);
  remark.engine = EngineKind::kSglang;
  EXPECT_NE(WordsOf(remark).find("or configure --page-size 16 on workers."), std::string::npos);
  remark = {.kind = Kind::kAgreed, .size = 32, .source = SizeSource::kReport};
  EXPECT_EQ(WordsOf(remark), "Auto-configured KV block size to 32 (from worker reports)");
}

TEST(BlockSizeWords, NameTheSettingThatIsInForce) {
  SizeRemark mismatch{
      .kind = Kind::kMismatch, .engine = EngineKind::kTrtllm, .size = 32, .other = 16};
  SizeRemark differs{
      .kind = Kind::kReportDiffers, .engine = EngineKind::kTrtllm, .size = 32, .other = 16};
  const std::pair<SizeSetting, std::string> cases[] = {
      {{}, "Set --kv-cache-block-size=32 on the frontend or "},
      {{"FATHOM_KV_CACHE_BLOCK_SIZE", ""}, "Set FATHOM_KV_CACHE_BLOCK_SIZE=32 on the frontend or "},
      {{"kv-cache-block-size", "fathom.yaml:3"},
       "Set kv-cache-block-size: 32 (fathom.yaml:3) on the frontend or "}};
  for (const auto& [setting, words] : cases) {
    mismatch.setting = differs.setting = setting;
    EXPECT_TRUE(WordsOf(mismatch).contains("\n" + words)) << WordsOf(mismatch);
    EXPECT_TRUE(WordsOf(differs).contains(words)) << WordsOf(differs);
    EXPECT_FALSE(WordsOf(mismatch).contains("DYN_"));
  }
}

TEST(BlockSizeWords, NeverAdviseASizeThatOtherWorkersDoNotHave) {
  using Others = SizeRemark::Others;
  SizeRemark remark{.kind = Kind::kMismatch,
                    .engine = EngineKind::kVllm,
                    .size = 32,
                    .other = 16,
                    .others = Others::kDiffer};
  EXPECT_TRUE(WordsOf(remark).contains(
      "\nConfigure --block-size 16 on workers, or unset --kv-cache-block-size on the frontend and "
      "start it with --block-size-conflict=mixed: other workers have another block size.\n"))
      << WordsOf(remark);
  remark.others = Others::kDifferByModel;
  EXPECT_TRUE(WordsOf(remark).contains(
      "\nUnset --kv-cache-block-size on the frontend, which then detects it, or configure "
      "--block-size 16 on workers.\n"))
      << WordsOf(remark);
}

TEST(BlockSizeWords, AdviseToUnsetOnlyWhatIsSet) {
  TrustFacts facts{.trust = {TrustState::kDoubted, TrustCause::kBlockSizeMismatch},
                   .engine = EngineKind::kVllm,
                   .known = {32, SizeSource::kEvents},
                   .expected = 16};
  EXPECT_EQ(WordsOf(facts).fix,
            "configure --block-size 16 on this worker, or start the router with "
            "--block-size-conflict=mixed");
  facts.setting = SizeSetting{"DYN_KV_CACHE_BLOCK_SIZE", ""};
  EXPECT_EQ(WordsOf(facts).fix,
            "Unset DYN_KV_CACHE_BLOCK_SIZE on the frontend, which then detects it, or configure "
            "--block-size 16 on workers.");
}

TEST(BlockSizeWords, BeginNoLineWithTheNameOfAModel) {
  SizeRemark remark{.kind = Kind::kConflictAtStart};
  remark.model = "m\n2026-01-01T00:00:00Z ERROR forged";
  remark.claims = {{.url = "http://a:1", .size = 16}, {.url = "http://b:1", .size = 32}};
  EXPECT_EQ(WordsOf(remark).find("\n2026"), std::string::npos);
}

}  // namespace
}  // namespace fathom
