#include "diagnose/doctor/memory_diagnosis.h"

#include <gmock/gmock.h>

#include "diagnose/sizing/model_shape.h"

namespace fathom {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view kLlama70 = R"({"architectures": ["LlamaForCausalLM"],
  "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "hidden_size": 8192,
  "intermediate_size": 28672, "vocab_size": 128256, "torch_dtype": "bfloat16",
  "max_position_embeddings": 131072})";

CaseFile Llama70OnH100(double requests_per_second) {
  CaseFile seen;
  seen.model = *ParseModelShape(kLlama70);
  seen.stated.engine = EngineKind::kVllm;
  seen.stated.gpu = "H100";
  seen.stated.tensor_parallel = 4;
  seen.stated.concurrency = 10;
  seen.stated.prompt_tokens = 8000;
  seen.stated.output_tokens = 500;
  seen.stated.request_rate = requests_per_second;
  seen.stated.turn_gap = std::chrono::seconds(30);
  return seen;
}

std::vector<Finding> MemoryFindings(const CaseFile& seen) {
  FindingBook book;
  DiagnoseMemory(seen, MemoryCasesOf(seen), book);
  return book.Take();
}

TEST(MemoryDiagnosis, SaysNothingWhereCachedBlocksOutliveTheTimeBetweenTurns) {
  EXPECT_THAT(MemoryFindings(Llama70OnH100(0.5)), IsEmpty());
}

TEST(MemoryDiagnosis, DoesNotWarnOfSettingsThatNoLoadUses) {
  CaseFile seen = Llama70OnH100(0.5);
  seen.stated.max_sequences = 1024;
  EXPECT_GT(*MemoryCasesOf(seen)[0].demand->in_time, 0.9);
  EXPECT_THAT(MemoryFindings(seen), IsEmpty());
  seen.stated.request_rate = 0;  // then the settings are all that is known
  EXPECT_EQ(MemoryFindings(seen)[0].id, FindingId::kMemoryPressure);
}

TEST(MemoryDiagnosis, CountsWithTheMemoryThatWasMeasured) {
  CaseFile seen = Llama70OnH100(0.5);
  seen.stated.gpu.clear();
  seen.gpus = {{.gpu = "0", .name = "NVIDIA H100 80GB HBM3", .total = uint64_t{81559} << 20}};
  EXPECT_EQ(MemoryCasesOf(seen)[0].budget->gpu_bytes, uint64_t{81559} << 20);
}

TEST(MemoryDiagnosis, FindsBlocksThatDieBeforeTheNextTurnAndRanksWhatWouldHelp) {
  const CaseFile seen = Llama70OnH100(5);
  const auto cases = MemoryCasesOf(seen);
  ASSERT_THAT(cases, SizeIs(1));
  // 470,000 tokens or so, 10 x 8,250 of them held; 5 x 8,500 new ones a second.
  EXPECT_NEAR(static_cast<double>(cases[0].capacity->tokens), 470'800, 4'708);
  EXPECT_DOUBLE_EQ(cases[0].demand->active_tokens, 82'500);
  const auto findings = MemoryFindings(seen);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kMemoryPressure);
  EXPECT_THAT(findings[0].message, HasSubstr("the next turn comes after 30 s"));
  ASSERT_FALSE(findings[0].fixes.empty());
  EXPECT_THAT(findings[0].fixes[0].what, HasSubstr("follow-up turns that find their blocks"));
  std::vector<std::string> settings;
  for (const Fix& fix : findings[0].fixes) settings.push_back(fix.setting);
  EXPECT_THAT(settings, Contains("--kv-cache-dtype fp8"));
  EXPECT_THAT(settings, Contains("--gpu-memory-utilization 0.95"));
}

TEST(MemoryDiagnosis, FindsAModelThatDoesNotFit) {
  CaseFile seen = Llama70OnH100(1);
  seen.stated.tensor_parallel = 1;
  const auto findings = MemoryFindings(seen);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kModelDoesNotFit);
}

TEST(MemoryDiagnosis, SpreadsExpertsOverDataParallelRanksAndSaysThatItAssumesSo) {
  CaseFile seen;
  seen.model = *ReadModelShape("tests/data/sizing/deepseek_v3.json");
  seen.stated.engine = EngineKind::kVllm;
  seen.stated.gpu = "H200";
  seen.stated.data_parallel = 8;
  const auto cases = MemoryCasesOf(seen);
  ASSERT_THAT(cases, SizeIs(1));
  EXPECT_GT(cases[0].budget->cache_bytes, 0u);
  EXPECT_THAT(cases[0].grounds, Contains(HasSubstr("experts spread")));
}

TEST(MemoryDiagnosis, FindsRunningRequestsThatNeedMoreThanThereIs) {
  CaseFile seen = Llama70OnH100(1);
  seen.stated.concurrency = 100;
  const auto findings = MemoryFindings(seen);
  EXPECT_THAT(findings[0].message, HasSubstr("Running requests alone need 825,000 tokens"));
}

TEST(MemoryDiagnosis, NamesWhatIsMissingInsteadOfGuessing) {
  CaseFile seen = Llama70OnH100(0);
  seen.stated.gpu.clear();
  seen.stated.concurrency = 0;
  const auto cases = MemoryCasesOf(seen);
  ASSERT_THAT(cases, SizeIs(1));
  EXPECT_FALSE(cases[0].capacity.has_value());
  EXPECT_THAT(cases[0].missing, Contains(HasSubstr("--gpu NAME")));
  EXPECT_THAT(cases[0].missing, Contains(HasSubstr("--concurrency")));
  EXPECT_THAT(cases[0].missing, Contains(HasSubstr("--request-rate")));
  EXPECT_THAT(MemoryFindings(seen), IsEmpty());
}

TEST(MemoryDiagnosis, FindsMemoryThatLiesIdleOnAGpuThatRunsAnEngine) {
  CaseFile seen;
  seen.gpus = {{.gpu = "0", .name = "NVIDIA H100", .total = 80ull << 30, .used = 50ull << 30},
               {.gpu = "1", .name = "NVIDIA H100", .total = 80ull << 30, .used = 74ull << 30},
               {.gpu = "2", .name = "NVIDIA H100", .total = 80ull << 30, .used = 1ull << 30}};
  const auto findings = MemoryFindings(seen);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kMemoryFractionLow);
  EXPECT_EQ(findings[0].subject, "GPU 0 ");
}

TEST(Thousands, AreSetApart) {
  EXPECT_EQ(Thousands(0), "0");
  EXPECT_EQ(Thousands(999), "999");
  EXPECT_EQ(Thousands(1000), "1,000");
  EXPECT_EQ(Thousands(470768), "470,768");
  EXPECT_EQ(Thousands(-1234567), "-1,234,567");
}

}  // namespace
}  // namespace fathom
