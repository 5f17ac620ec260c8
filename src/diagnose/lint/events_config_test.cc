#include "diagnose/lint/events_config.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(EventsConfig, ChangesAMemberInItsPlace) {
  EXPECT_EQ(
      WithChanges(R"({"publisher":"null","topic":"a"})", {{"publisher", Json(std::string("zmq"))}}),
      R"({"publisher":"zmq","topic":"a"})");
}

TEST(EventsConfig, AddsAMemberAtTheEndWithTheSpacesThatItFinds) {
  EXPECT_EQ(WithChanges(R"({"a": 1, "b": [true, null]})", {{"c", Json(true)}}),
            R"({"a": 1, "b": [true,null], "c": true})");
}

TEST(EventsConfig, FillsAnEmptyObject) {
  EXPECT_EQ(WithChanges("{}", {{"a", Json(true)}}), R"({"a":true})");
}

TEST(EventsConfig, LeavesAloneWhatIsNoObject) {
  for (const char* text : {"", "null", "[1]", "{", "zmq"}) {
    EXPECT_EQ(WithChanges(text, {{"a", Json(true)}}), "") << text;
  }
}

TEST(EventsConfig, GivesReplayAPortBehindThoseOfAllRanks) {
  Program program;
  program.engine = EngineKind::kVllm;
  PlannedEngine engine{&program, {}};
  engine.settings.data_parallel = 4;
  EXPECT_TRUE(NewEventsConfig(engine).contains(R"("replay_endpoint":"tcp://*:5561")"));
  EXPECT_TRUE(NewEventsConfig(engine).contains(R"("enable_kv_cache_events":true)"));
}

TEST(EventsConfig, HasNoMemberThatSglangDoesNotKnow) {
  Program program;
  program.engine = EngineKind::kSglang;
  const PlannedEngine engine{&program, {}};
  EXPECT_FALSE(NewEventsConfig(engine).contains("enable_kv_cache_events"));
}

}  // namespace
}  // namespace fathom
