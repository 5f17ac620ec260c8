#include "router/gateway/usage_report.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(UsageReport, ReadsWhatTheEngineFoundCached) {
  EXPECT_EQ(ReadUsage(R"({"prompt_tokens": 40, "total_tokens":41,
                          "prompt_tokens_details": {"created_cache_tokens":1,"cached_tokens":32}})"),
            (EngineUsage{40, 32}));
  EXPECT_EQ(ReadUsage(R"({"prompt_tokens":40,"prompt_tokens_details":{"cached_tokens":0}})"),
            (EngineUsage{40, 0}));
}

TEST(UsageReport, ReadsTheTokensOfTheAnswer) {
  EXPECT_EQ(ReadUsage(R"({"prompt_tokens":40,"completion_tokens":3})"),
            (EngineUsage{40, std::nullopt, 3}));
  EXPECT_EQ(ReadUsage(R"({"input_tokens":40,"output_tokens":3,"total_tokens":43})"),
            (EngineUsage{40, std::nullopt, 3}));
  EXPECT_EQ(ReadUsage(R"({"input_tokens":40,"output_tokens":"3"})"),
            (EngineUsage{40, std::nullopt, 0}));
}

TEST(UsageReport, ReadsTheMetaInfoOfGenerate) {
  EXPECT_EQ(ReadUsage(R"({"id":"1","finish_reason":{"type":"length","length":1},)"
                      R"("prompt_tokens":40,"completion_tokens":1,"cached_tokens":32})"),
            (EngineUsage{40, 32, 1}));
}

TEST(UsageReport, TellsNothingFromNone) {
  EXPECT_EQ(ReadUsage(R"({"prompt_tokens":40})"), (EngineUsage{40, std::nullopt}));
  for (const char* const details : {"null", "{}", "7", R"({"cached_tokens":null})",
                                    R"({"cached_tokens":-1})", R"({"cached_tokens":1.5})"}) {
    const std::string json =
        std::string(R"({"prompt_tokens":40,"prompt_tokens_details":)") + details + "}";
    EXPECT_EQ(ReadUsage(json), (EngineUsage{40, std::nullopt})) << json;
  }
}

TEST(UsageReport, ReadsNothingWithoutTheTokensOfThePrompt) {
  for (const char* const json :
       {"", "null", "{}", "[]", R"({"prompt_tokens":null})", R"({"prompt_tokens":"4"})",
        R"({"prompt_tokens":4)", R"({"prompt_tokens":18446744073709551616})"}) {
    EXPECT_EQ(ReadUsage(json), std::nullopt) << json;
  }
}

}  // namespace
}  // namespace fathom
