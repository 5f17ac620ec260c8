#include "router/events/event_source.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

using Sources = std::vector<EventSource>;

// As vLLM 0.32.0 and SGLang 0.5.23 answered.
constexpr std::string_view kVllm =
    R"({"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5801",)"
    R"("replay_endpoint":"tcp://*:5901","buffer_steps":10000,"hwm":100000,)"
    R"("max_queue_size":100000,"topic":"kv@tiny"}})";
constexpr std::string_view kSglang =
    R"({"kv_events": {"publisher": "zmq", "endpoint_host": "*", "endpoint_port_base": 5901,)"
    R"( "topic": "sg", "block_size": 16, "dp_size": 1, "replay_endpoint_port_base": 5911},)"
    R"( "page_size": 16, "max_total_num_tokens": 2048, "dp_size": 1, "kv_events_config":)"
    R"( "{\"publisher\":\"zmq\",\"endpoint\":\"tcp://*:5901\",)"
    R"(\"replay_endpoint\":\"tcp://*:5911\",\"topic\":\"sg\"}", "version": "0.5.23",)"
    R"( "speculative_algorithm": null})";

std::string ProblemOf(const Result<EventSources>& result) {
  if (!result) return "error: " + result.error().what;
  return result->sources.empty() ? result->problem : "none";
}

std::string VllmRank(std::string_view key, std::string_view fields) {
  return fmt::format(R"({{"{}":{{{}}}}})", key, fields);
}

TEST(KvEventSources, ReadsWhatVllmAnswers) {
  const auto found = ParseKvEventSources(kVllm, "worker-1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sources,
            (Sources{{0, "tcp://worker-1:5801", "tcp://worker-1:5901", "kv@tiny", false}}));
  EXPECT_EQ(found->problem, "");
}

TEST(KvEventSources, SortsRanksAndLeavesOutSilentOnes) {
  const auto found = ParseKvEventSources(
      R"({"10":{"endpoint":"tcp://*:5567","replay_endpoint":null},"2":{"endpoint":"tcp://*:5559"},)"
      R"("3":{"enable_kv_cache_events":false,"endpoint":"tcp://*:5560"}})",
      "h");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sources, (Sources{{2, "tcp://h:5559", "", "", false},  //
                                     {10, "tcp://h:5567", "", "", false}}));
  EXPECT_EQ(found->problem, "");
}

TEST(KvEventSources, SaysWhyThereAreNone) {
  const auto off = ParseKvEventSources(VllmRank("0", R"("enable_kv_cache_events":false)"), "h");
  EXPECT_EQ(ProblemOf(off).find("vLLM's KV events are off; start it with"), 0u);
  const auto none = ParseKvEventSources(VllmRank("0", R"("publisher":"null")"), "h");
  EXPECT_NE(ProblemOf(none).find("through 'null'"), std::string::npos);
}

TEST(KvEventSources, AreNoneAndOffWhenVllmListsNoRank) {
  const auto found = ParseKvEventSources("{}", "h");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->sources.empty());
  EXPECT_TRUE(found->off);
  EXPECT_EQ(found->problem,
            "vLLM's KV events are off; start it with --kv-events-config "
            R"('{"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "tcp://*:5557", )"
            R"("replay_endpoint": "tcp://*:5657"}')");
}

TEST(KvEventSources, KnowsAnEngineThatDialsOut) {
  const auto dials = [](std::string_view endpoint) {
    const auto body = VllmRank("0", fmt::format(R"("endpoint":"{}")", endpoint));
    return ParseKvEventSources(body, "h")->sources.at(0).dials_out;
  };
  EXPECT_TRUE(dials("tcp://router:5557"));
  EXPECT_TRUE(dials("tcp://[fd00::2]:5557"));
  EXPECT_FALSE(dials("tcp://0.0.0.0:5557"));
  EXPECT_FALSE(dials("tcp://[::]:5557"));
  EXPECT_FALSE(dials("ipc:///run/kv"));
}

TEST(KvEventSources, RefusesWhatCannotBe) {
  const auto refusal = [](std::string_view key, std::string_view fields) {
    return ProblemOf(ParseKvEventSources(VllmRank(key, fields), "h"));
  };
  EXPECT_EQ(refusal("1024", R"("endpoint":"tcp://*:1")"),
            "error: /kv_event_sources: '1024' is not a rank from 0 to 1023");
  EXPECT_EQ(refusal("-1", ""), "error: /kv_event_sources: '-1' is not a rank from 0 to 1023");
  EXPECT_EQ(refusal("detail", ""),
            "error: /kv_event_sources: 'detail' is not a rank from 0 to 1023");
  EXPECT_EQ(refusal("0", R"("endpoint":5557)"),
            "error: /kv_event_sources: rank 0: endpoint is not a string");
  EXPECT_EQ(refusal("0", R"("endpoint":"tcp://*:1","topic":[])"),
            "error: /kv_event_sources: rank 0: topic is not a string");
  for (const std::string_view endpoint :
       {"", "tcp://*:65536", "tcp://*:0", "tcp://*:", "tcp://:5557", "tcp://*", "http://h:1",
        "tcp://a b:1", "ipc://", R"(tcp://h\u001b[2J:1)"}) {
    const auto said = refusal("0", fmt::format(R"("endpoint":"{}")", endpoint));
    EXPECT_NE(said.find("is not an endpoint"), std::string::npos) << said;
    EXPECT_EQ(said.find('\x1b'), std::string::npos);
    const auto replay =
        refusal("0", fmt::format(R"("endpoint":"tcp://*:1","replay_endpoint":"{}")", endpoint));
    EXPECT_EQ(replay == "none", endpoint.empty()) << replay;
  }
}

TEST(KvEventSources, RefusesWhatIsNoAnswerOfVllm) {
  for (const std::string_view body :
       {"", "[]", "null", "{", "Not Found", R"({"0":[]})", R"({"0":null})",
        R"({"0":{"endpoint":"tcp://*:1"},"00":{"endpoint":"tcp://*:2"}})"}) {
    EXPECT_FALSE(ParseKvEventSources(body, "h")) << body;
  }
}

TEST(ServerInfo, ReadsWhatSglangAnswers) {
  const auto found = ParseServerInfo(kSglang, "10.0.0.7");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sources,
            (Sources{{0, "tcp://10.0.0.7:5901", "tcp://10.0.0.7:5911", "sg", false}}));
}

TEST(ServerInfo, SpreadsPortsOverRanks) {
  const auto found =
      ParseServerInfo(R"({"kv_events":{"endpoint_host":"::","endpoint_port_base":5557,"dp_size":2,)"
                      R"("replay_endpoint_port_base":6000}})",
                      "fd00::1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sources,
            (Sources{{0, "tcp://[fd00::1]:5557", "tcp://[fd00::1]:6000", "", false},
                     {1, "tcp://[fd00::1]:5558", "tcp://[fd00::1]:6001", "", false}}));
}

TEST(ServerInfo, TakesTheReplayEndpointFromTheConfigWhereItIsOnlyThere) {
  const auto found =
      ParseServerInfo(R"({"kv_events":{"endpoint_host":"*","endpoint_port_base":5557},"dp_size":2,)"
                      R"("kv_events_config":"{\"replay_endpoint\":\"tcp://*:7000\"}"})",
                      "h");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->sources.size(), 2u);
  EXPECT_EQ(found->sources[1].endpoint, "tcp://h:5558");
  EXPECT_EQ(found->sources[1].replay, "tcp://h:7001");
}

TEST(ServerInfo, ReadsOlderReleasesThatOnlyRepeatTheirConfig) {
  const auto found = ParseServerInfo(
      R"({"dp_size":1,"kv_events_config":"{\"publisher\":\"zmq\",\"topic\":\"t\"}"})", "h");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sources, (Sources{{0, "tcp://h:5557", "", "t", false}}));
}

TEST(ServerInfo, SaysWhyThereAreNone) {
  for (const std::string_view body :
       {R"({"kv_events":null,"kv_events_config":null})", R"({"kv_events":null})",
        R"({"kv_events_config":""})", R"({"kv_events_config":"{\"publisher\":\"null\"}"})",
        R"({"kv_events":{"publisher":"null","endpoint_port_base":1}})"}) {
    EXPECT_EQ(ProblemOf(ParseServerInfo(body, "h")).find("SGLang's KV events are off"), 0u) << body;
  }
}

TEST(ServerInfo, RefusesAnotherEnginesAnswer) {
  EXPECT_EQ(ProblemOf(ParseServerInfo(R"({"disaggregated_params":{}})", "h")),
            "error: /server_info: reports nothing about KV events");
}

TEST(ServerInfo, RefusesWhatCannotBe) {
  for (
      const std::string_view body :
      {"", "[]", "{", R"({"kv_events":[]})", R"({"kv_events":"zmq"})", R"({"kv_events":{}})",
       R"({"kv_events":{"endpoint_port_base":0}})", R"({"kv_events":{"endpoint_port_base":-1}})",
       R"({"kv_events":{"endpoint_port_base":65536}})",
       R"({"kv_events":{"endpoint_port_base":"5557"}})",
       R"({"kv_events":{"endpoint_port_base":65535,"dp_size":2}})",
       R"({"kv_events":{"endpoint_port_base":5557,"dp_size":1025}})",
       R"({"kv_events":{"endpoint_port_base":5557,"dp_size":0}})",
       R"({"kv_events":{"endpoint_port_base":5557,"endpoint_host":7}})",
       R"({"kv_events":{"endpoint_port_base":5557,"endpoint_host":"a b"}})",
       R"({"kv_events":{"endpoint_port_base":5557,"replay_endpoint_port_base":1e9}})",
       R"({"kv_events_config":7})", R"({"kv_events_config":"{"})",
       R"({"dp_size":2,"kv_events_config":"{\"publisher\":\"zmq\",\"endpoint\":\"ipc:///x\"}"})"}) {
    const auto found = ParseServerInfo(body, "h");
    EXPECT_FALSE(found) << body;
    if (!found) {
      EXPECT_EQ(found.error().blame, Blame::kPeer);
    }
  }
}

TEST(WithHost, ReplacesWildcardsOnly) {
  EXPECT_EQ(WithHost("tcp://*:5557", "h"), "tcp://h:5557");
  EXPECT_EQ(WithHost("tcp://0.0.0.0:5557", "10.0.0.1"), "tcp://10.0.0.1:5557");
  EXPECT_EQ(WithHost("tcp://[::]:5557", "fd00::1"), "tcp://[fd00::1]:5557");
  EXPECT_EQ(WithHost("tcp://:::5557", "[fd00::1]"), "tcp://[fd00::1]:5557");
  EXPECT_EQ(WithHost("tcp://10.0.0.9:5557", "h"), "tcp://10.0.0.9:5557");
  EXPECT_EQ(WithHost("tcp://[fd00::9]:5557", "h"), "tcp://[fd00::9]:5557");
  EXPECT_EQ(WithHost("ipc:///run/*:5557", "h"), "ipc:///run/*:5557");
  EXPECT_EQ(WithHost("", "h"), "");
}

TEST(WithPortOffset, CountsRanksInPorts) {
  EXPECT_EQ(WithPortOffset("tcp://h:5557", 0), "tcp://h:5557");
  EXPECT_EQ(WithPortOffset("tcp://h:5557", 3), "tcp://h:5560");
  EXPECT_EQ(WithPortOffset("tcp://[fd00::1]:65534", 1), "tcp://[fd00::1]:65535");
  EXPECT_EQ(WithPortOffset("ipc:///run/kv", 0), "ipc:///run/kv");
  EXPECT_FALSE(WithPortOffset("tcp://h:65535", 1));
  EXPECT_FALSE(WithPortOffset("tcp://h:1", 4294967295u));
  EXPECT_FALSE(WithPortOffset("ipc:///run/kv", 1));
}

}  // namespace
}  // namespace fathom
