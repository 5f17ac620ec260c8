#include "diagnose/logs/message_front.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(MessageFront, KnowsWhatLoggersAndCollectorsPutInFront) {
  for (const std::string_view front :
       {"",
        "WARN ",
        "WARN: ",
        "2026-02-16T14:38:53.950961Z  WARN dynamo_llm::kv_router::indexer: ",
        "2026-03-01T12:00:00.000Z WARN  ",
        "INFO 02-16 14:30:02 [kv_cache_utils.py:524] ",
        "INFO 02-16 14:30:02 llm_engine.py:237] ",
        "(EngineCore_0 pid=123) INFO 02-16 14:30:02 [core.py:1] ",
        "[2026-02-16 14:38:53 TP0] ",
        "[TensorRT-LLM][INFO] ",
        "[11/16/2026-05:00:00] [TRT-LLM] [RANK 0] [I] ",
        "[pod/frontend-0/main] 2026-02-16T14:38:53Z  WARN x::y: ",
        "frontend-1  | 2026-02-16T14:38:53Z  WARN x::y: ",
        "frontend-0 main 2026-02-16T14:38:53Z  WARN x::y: ",
        "Feb 16 14:38:53 node7 fathom[881]: 2026-02-16T14:38:53Z WARN  ",
        "2026-02-16T14:38:53+0000 node7 fathom[881]: ",
        "2026-02-16T14:38:53Z stderr F WARN ",
        "2026-02-16T14:38:53Z 2026-02-16T14:38:53Z WARN ",
        R"(2026-02-16T14:38:53Z INFO http-request{id="Decode batch }: " n=1}: x::y: )",
        "2026-08-21 07:17:09,753 INFO engine: Engine 000: "}) {
    const std::string line = fmt::format("{}Failed to apply event", front);
    const auto phrase = OpeningOf(line).phrase;
    ASSERT_TRUE(phrase) << line;
    EXPECT_EQ(phrase->kind, LogKind::kApplyFailed) << line;
    EXPECT_EQ(phrase->at, front.size()) << line;
  }
}

TEST(MessageFront, TakesNothingFromTheMiddleOfAMessage) {
  for (const std::string_view line :
       {"INFO 11-16 05:00:00 [logger.py:39] Received request c-1: prompt: 'Failed to apply event'",
        "What does Failed to apply event mean?", "1. Failed to apply event",
        "user: Failed to apply event", "prompt='Failed to apply event'",
        R"(["Failed to apply event"])", "[a 'Failed to] Failed to apply event",
        "INFO x::y: prompt: Failed to apply event", "Engine room: Failed to apply event",
        "frontend main Failed to apply event", "x{a=1} Failed to apply event",
        R"(INFO http-request{id="Failed to apply event"}: x::y: request completed)"}) {
    EXPECT_FALSE(OpeningOf(line).phrase) << line;
  }
}

TEST(MessageFront, KnowsWhetherATargetWasThere) {
  EXPECT_TRUE(OpeningOf("2026-02-16T14:38:53Z WARN dynamo_llm::kv_router: no source").has_path);
  EXPECT_FALSE(OpeningOf("INFO 11-16 05:00:00 [logger.py:39] a dynamo_llm::x: b").has_path);
}

}  // namespace
}  // namespace fathom
