#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/lint/linter.h"

namespace fathom {
namespace {

std::vector<LintFinding> FindingsOf(std::vector<SourceFile> files) { return Lint(files).findings; }

const std::string kWorker =
    "python3 -m dynamo.trtllm --model-path m --publish-kv-events --kv-block-size 64";

TEST(WorkerSizeRules, CompareTheWorkerWithItsEngineFile) {
  const auto findings = FindingsOf({{"x.sh", kWorker + " --extra-engine-args e.yaml\n"},
                                    {"e.yaml", "kv_cache_config: {tokens_per_block: 16}\n"}});
  ASSERT_EQ(findings.size(), 1);
  const Finding& finding = findings[0].finding;
  EXPECT_EQ(finding.id, FindingId::kBlockSizeMismatch);
  EXPECT_THAT(finding.message, testing::AllOf(testing::HasSubstr("64"), testing::HasSubstr("16")));
  EXPECT_EQ(finding.place.file, "x.sh");
  EXPECT_EQ(finding.fixes.size(), 2);
}

TEST(WorkerSizeRules, AreSilentWhereTheEngineFileIsNotHere) {
  EXPECT_TRUE(FindingsOf({{"x.sh", kWorker + " --extra-engine-args e.yaml\n"}}).empty());
}

TEST(WorkerSizeRules, AreSilentSinceTheWorkerAsksTheEngine) {
  const std::string image = "docker run nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:";
  EXPECT_EQ(FindingsOf({{"x.sh", image + "0.9.0 " + kWorker + "\n"}}).size(), 1);
  EXPECT_TRUE(FindingsOf({{"x.sh", image + "1.5.0 " + kWorker + "\n"}}).empty());
}

}  // namespace
}  // namespace fathom
