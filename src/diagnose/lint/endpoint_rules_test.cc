#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/lint/linter.h"

namespace fathom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<LintFinding> ScriptFindings(std::string text) {
  return Lint(std::vector{SourceFile{"x.sh", std::move(text)}}).findings;
}

std::vector<std::string> ScriptFindingIds(std::string text) {
  std::vector<std::string> ids;
  for (const LintFinding& found : ScriptFindings(std::move(text))) {
    ids.emplace_back(Name(found.finding.id));
  }
  return ids;
}

std::string Vllm(std::string_view endpoint) {
  return fmt::format(
      "vllm serve m --kv-events-config '{{\"enable_kv_cache_events\":true,\"endpoint\":\"{}\","
      "\"replay_endpoint\":\"tcp://*:5999\"}}'\n",
      endpoint);
}

std::string WithoutReplay(std::string_view endpoint) {
  return fmt::format(
      "vllm serve m --kv-events-config '{{\"enable_kv_cache_events\":true,\"endpoint\":\"{}\"}}'\n",
      endpoint);
}

TEST(EndpointRules, AreSilentAboutAnAddressThatAnotherRouterMayBind) {
  EXPECT_THAT(ScriptFindingIds(Vllm("tcp://epp.ml.svc:5557")), IsEmpty());
  EXPECT_THAT(
      ScriptFindingIds(Vllm("tcp://epp.ml.svc:5557") +
                       "fathom serve --worker-urls http://a --kv-events-bind tcp://*:5557\n"),
      IsEmpty());
  EXPECT_THAT(
      ScriptFindingIds(Vllm("tcp://epp.ml.svc:5557") + "fathom serve --worker-urls http://a\n"),
      ElementsAre("endpoint-connects"));
}

TEST(EndpointRules, SayThatNobodyListensOnlyOfTheMachineItself) {
  for (const char* local : {"tcp://0.0.0.0:5557", "tcp://127.0.0.1:5557", "tcp://localhost:5557"}) {
    const auto findings = ScriptFindings(Vllm(local));
    ASSERT_EQ(findings.size(), 1) << local;
    EXPECT_THAT(findings[0].finding.why, HasSubstr("no process listens")) << local;
  }
}

TEST(EndpointRules, NameTheReplayThatIsMissingTogetherWithTheWrongEndpoint) {
  EXPECT_THAT(ScriptFindingIds(WithoutReplay("tcp://0.0.0.0:5557")),
              ElementsAre("endpoint-connects", "replay-missing"));
}

TEST(EndpointRules, GiveNoNumberWhereTheEventPortIsAVariable) {
  for (const char* endpoint : {"tcp://*:$EVENTS", "tcp://*:65535"}) {
    const auto findings = ScriptFindings(WithoutReplay(endpoint));
    ASSERT_EQ(findings.size(), 1) << endpoint;
    EXPECT_THAT(findings[0].finding.fixes[0].what,
                HasSubstr("the event port plus the number of ranks, or more"));
    EXPECT_THAT(findings[0].edits, IsEmpty());
  }
}

TEST(EndpointRules, KeepAVariableThatIsThePort) {
  const auto findings = ScriptFindings(Vllm("tcp://0.0.0.0:$EVENTS"));
  ASSERT_EQ(findings.size(), 1);
  EXPECT_THAT(findings[0].finding.fixes[0].what, HasSubstr("tcp://*:$EVENTS"));
  EXPECT_THAT(findings[0].edits, IsEmpty());
}

TEST(EndpointRules, SayNothingOfSglangWhoseVersionIsNotKnown) {
  const std::string config = "{\"publisher\":\"zmq\",\"endpoint\":\"tcp://0.0.0.0:5557\"}";
  EXPECT_THAT(ScriptFindingIds(fmt::format("python3 -m dynamo.sglang --model-path m --page-size 16 "
                                           "--kv-events-config '{}'\n",
                                           config)),
              IsEmpty());
}

}  // namespace
}  // namespace fathom
