#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "router/sources/endpoint_slices.h"
#include "router/sources/pod_look.h"
#include "router/sources/pool_look.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

Json KubeObject(std::string_view text) {
  auto parsed = Json::Parse(text);
  EXPECT_TRUE(parsed) << text;
  return *std::move(parsed);
}

SliceLook Slice(std::string_view endpoints, std::string_view port = "http",
                std::string_view ports = R"([{"name":"http","protocol":"TCP","port":8000}])",
                std::string_view type = "IPv4") {
  return ReadEndpointSlice(
      KubeObject(fmt::format(R"({{"addressType":"{}","ports":{},"endpoints":{}}})", type, ports,
                             endpoints)),
      port);
}

SourceSays SaysWith(std::string_view conditions) {
  const auto look =
      Slice(fmt::format(R"([{{"addresses":["10.0.0.1"],"conditions":{}}}])", conditions));
  EXPECT_THAT(look.seen, SizeIs(1));
  return look.seen.front().says;
}

TEST(EndpointSlices, AbsentReadyMeansTrue) {
  EXPECT_EQ(SaysWith("{}"), SourceSays::kServe);
  EXPECT_EQ(SaysWith("null"), SourceSays::kServe);
  EXPECT_EQ(SaysWith(R"({"ready":null,"serving":true})"), SourceSays::kServe);
  EXPECT_EQ(SaysWith(R"({"ready":true})"), SourceSays::kServe);
}

TEST(EndpointSlices, TerminatingDrainsWhetherItServesOrNot) {
  EXPECT_EQ(SaysWith(R"({"ready":false,"serving":true,"terminating":true})"), SourceSays::kDrain);
  EXPECT_EQ(SaysWith(R"({"ready":false,"serving":false,"terminating":true})"), SourceSays::kDrain);
  // With publishNotReadyAddresses.
  EXPECT_EQ(SaysWith(R"({"ready":true,"serving":true,"terminating":true})"), SourceSays::kDrain);
  EXPECT_EQ(SaysWith(R"({"ready":false,"serving":false,"terminating":false})"),
            SourceSays::kUnready);
}

TEST(EndpointSlices, TakesThePortByNameOrNumber) {
  constexpr std::string_view kOne = R"([{"addresses":["10.0.0.1"]}])";
  constexpr std::string_view kPorts =
      R"([{"name":"dns","protocol":"UDP","port":8000},{"name":"http","port":8080},
          {"name":"tls","port":8443,"appProtocol":"https"}])";
  EXPECT_EQ(Slice(kOne, "http", kPorts).seen.at(0).port, 8080);
  EXPECT_EQ(Slice(kOne, "8443", kPorts).seen.at(0).port, 8443);
  EXPECT_TRUE(Slice(kOne, "tls", kPorts).seen.at(0).tls);
  EXPECT_FALSE(Slice(kOne, "http", kPorts).seen.at(0).tls);
  const auto udp = Slice(kOne, "8000", kPorts);
  EXPECT_THAT(udp.seen, IsEmpty());
  EXPECT_THAT(udp.problem, HasSubstr("no TCP port '8000'; its ports are dns (8000), http (8080)"));
  EXPECT_THAT(Slice(kOne, "grpc", kPorts).seen, IsEmpty());
  // A port without a number: every one.
  EXPECT_EQ(Slice(kOne, "9000", R"([{"name":"","port":null}])").seen.at(0).port, 9000);
}

TEST(EndpointSlices, KnowsItsPodAndItsAddress) {
  const auto look = Slice(
      R"([{"addresses":["FD00::1"],"targetRef":{"kind":"Pod","name":"vllm-0","uid":"u-0"}},
          {"addresses":["fd00::2"],"targetRef":{"kind":"Node","name":"vllm-0","uid":"u-1"}}])",
      "http", R"([{"name":"http","port":8000}])", "IPv6");
  ASSERT_THAT(look.seen, SizeIs(2));
  EXPECT_EQ(look.seen[0].host, "fd00::1");
  EXPECT_EQ(look.seen[0].pod, "vllm-0");
  EXPECT_EQ(look.seen[0].uid, "u-0");
  EXPECT_EQ(look.seen[1].pod, "");
}

TEST(EndpointSlices, PassesOverWhatIsNoAddressAndSaysSo) {
  const auto names = Slice(R"([{"addresses":["engine.example"]}])", "http",
                           R"([{"name":"http","port":8000}])", "FQDN");
  EXPECT_THAT(names.seen, IsEmpty());
  EXPECT_THAT(names.problem, HasSubstr("type FQDN"));
  const auto odd = Slice(R"([{"addresses":[]},{"addresses":[7]},5,{"addresses":["10.0.0.1"]}])");
  EXPECT_THAT(odd.seen, SizeIs(1));
  EXPECT_THAT(odd.problem, HasSubstr("without an IP address"));
  for (const std::string_view empty : {"null", "[]", "{}", "3"}) {
    EXPECT_THAT(Slice(empty).seen, IsEmpty());
    EXPECT_EQ(Slice(empty).problem, "");
  }
  EXPECT_THAT(ReadEndpointSlice(KubeObject("[]"), "http").seen, IsEmpty());
}

Json PodOf(std::string_view metadata, std::string_view status = "{}") {
  return KubeObject(fmt::format(
      R"({{"metadata":{},"status":{},"spec":{{"containers":[{{"ports":[
          {{"name":"http","containerPort":8000}},{{"containerPort":9}}]}}]}}}})",
      metadata, status));
}

constexpr std::string_view kReadyPod =
    R"({"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}],
        "conditions":[{"type":"Ready","status":"True"}]})";

TEST(PodLook, HasItsAddressesPortsAndState) {
  const auto pod = PodLook::Of("p", PodOf(R"({"uid":"u"})", kReadyPod));
  EXPECT_EQ(pod.says, SourceSays::kServe);
  EXPECT_THAT(pod.addresses, ElementsAre("10.0.0.1", "fd00::1"));
  ASSERT_THAT(pod.At("http"), SizeIs(2));
  EXPECT_EQ(pod.At("http")[0].port, 8000);
  EXPECT_EQ(pod.At("http")[0].Key(), pod.At("http")[1].Key());
  EXPECT_EQ(pod.At("7000").at(0).port, 7000);  // need not be declared
  EXPECT_THAT(pod.At("grpc"), IsEmpty());
}

TEST(PodLook, DrainsOnceItIsDeletedAndIsNothingOnceItHasEnded) {
  EXPECT_EQ(
      PodLook::Of("p", PodOf(R"({"deletionTimestamp":"2026-11-18T00:00:00Z"})", kReadyPod)).says,
      SourceSays::kDrain);
  EXPECT_EQ(PodLook::Of("p", PodOf("{}", R"({"phase":"Running","podIP":"10.0.0.1"})")).says,
            SourceSays::kUnready);
  for (const std::string_view phase : {"Succeeded", "Failed"}) {
    const auto ended =
        PodLook::Of("p", PodOf("{}", fmt::format(R"({{"phase":"{}","podIP":"10.0.0.1"}})", phase)));
    EXPECT_THAT(ended.At("http"), IsEmpty());
  }
  EXPECT_THAT(PodLook::Of("p", PodOf("{}", R"({"phase":"Pending"})")).At("http"), IsEmpty());
}

PodFacts FactsOf(std::string_view metadata) { return PodFacts::Of(PodOf(metadata)); }

TEST(PodFacts, HasTheRoleOfOurOwnLabelFirst) {
  EXPECT_EQ(FactsOf(R"({"labels":{"llm-d.ai/role":"prefill"}})").role, "prefill");
  EXPECT_EQ(FactsOf(R"({"labels":{"llm-d.ai/role":"decode"}})").role, "decode");
  EXPECT_EQ(FactsOf(R"({"labels":{"llm-d.ai/role":"prefill-decode"}})").role, "both");
  EXPECT_EQ(FactsOf(R"({"labels":{"llm-d.ai/role":"both"}})").role, "both");
  EXPECT_EQ(FactsOf(R"({"labels":{"llm-d.ai/role":"encode"}})").role, "");
  EXPECT_EQ(FactsOf(R"({"labels":{"llm-d.ai/role":"encode-prefill"}})").role, "");
  EXPECT_EQ(
      FactsOf(R"({"labels":{"llm-d.ai/role":"decode"},"annotations":{"fathom.io/role":"prefill"}})")
          .role,
      "prefill");
  EXPECT_EQ(FactsOf(R"({"labels":null})").role, "");
}

TEST(PodFacts, HasEventPortsAndTopic) {
  const auto facts = FactsOf(
      R"({"annotations":{"fathom.io/kv-events-port":"5557","fathom.io/kv-events-replay-port":"5558",
          "fathom.io/kv-events-topic":"kv@a"}})");
  EXPECT_EQ(facts.events_port, 5557);
  EXPECT_EQ(facts.replay_port, 5558);
  EXPECT_EQ(facts.topic, "kv@a");
  EXPECT_FALSE(FactsOf(R"({"annotations":{"fathom.io/kv-events-port":"70000"}})").events_port);
  EXPECT_FALSE(FactsOf(R"({"annotations":{"fathom.io/kv-events-port":5557}})").events_port);
}

TEST(PodFacts, KeepsLabelsButNotRevisionsAndOnlyKnownAnnotations) {
  const auto facts = FactsOf(
      R"({"labels":{"app":"vllm","pod-template-hash":"abc","llm-d.ai/engine-type":"sglang","n":7},
          "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}",
                         "fathom.io/weight":"2","vllm.ai/bootstrap-port":"8998"}})");
  EXPECT_THAT(facts.labels, ElementsAre(Pair("app", "vllm"), Pair("fathom.io/weight", "2"),
                                        Pair("llm-d.ai/engine-type", "sglang"),
                                        Pair("vllm.ai/bootstrap-port", "8998")));
}

TEST(PodFacts, IsBoundedAndKeepsOurOwnFirst) {
  std::string labels;
  for (int i = 0; i < 100; ++i) labels += fmt::format(R"("a{}":"x",)", i);
  const auto many = FactsOf(fmt::format(R"({{"labels":{{{}"fathom.io/role":"decode"}}}})", labels));
  EXPECT_THAT(many.labels, SizeIs(PodFacts::kMaxLabels));
  EXPECT_TRUE(many.labels.contains("fathom.io/role"));
  const auto large =
      FactsOf(fmt::format(R"({{"labels":{{"a":"x"}},"annotations":{{"fathom.io/lora":"{}"}}}})",
                          std::string(9000, 'x')));
  EXPECT_THAT(large.labels, ElementsAre(Pair("a", "x")));
}

TEST(PoolLook, HasItsSelectorAndItsPorts) {
  const auto pool = PoolLook::Of(KubeObject(
      R"({"spec":{"selector":{"matchLabels":{"tier":"gpu","app":"vllm"}},
          "targetPorts":[{"number":8000},{"number":8001},{"number":0},{}]}})"));
  EXPECT_EQ(pool.selector, "app=vllm,tier=gpu");
  EXPECT_THAT(pool.ports, ElementsAre("8000", "8001"));
  EXPECT_EQ(PoolLook::Of(KubeObject("{}")), PoolLook());
}

}  // namespace
}  // namespace fathom
