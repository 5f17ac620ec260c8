#include "router/sources/kube_claims.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

KubeSighting At(std::string host, std::string uid, SourceSays says = SourceSays::kServe,
                uint16_t port = 8000) {
  return {.host = std::move(host),
          .port = port,
          .says = says,
          .pod = uid.empty() ? "" : "pod-" + uid,
          .uid = std::move(uid)};
}

// No worker is probed: the prober's loop never runs.
class KubeClaimsTest : public testing::Test {
 protected:
  void Apply(bool blind = false) { next_ = claims_->Apply(now_, blind); }
  void Set(const std::string& object, std::vector<KubeSighting> seen) {
    claims_->Set(object, std::move(seen));
    Apply();
  }
  void Pass(Duration time) {
    now_ += time;
    Apply();
  }
  std::vector<std::string> Urls() const {
    std::vector<std::string> urls;
    for (const Member& member : fleet_.Current()->members()) {
      urls.push_back(member.worker->spec().url);
    }
    return urls;
  }
  std::shared_ptr<Worker> WorkerAt(const std::string& url) const {
    return muster_.Find(WorkerId::OfUrl(url));
  }
  const WorkerOrigin& OriginAt(const std::string& url) const {
    return *fleet_.Current()->Find(WorkerId::OfUrl(url))->origin;
  }
  void Open(WorkerRequest entry = {}) {
    entry.url = "k8s://ml/vllm:http";
    auto made = KubeEntry::Make(entry, "vllm.ml.svc", directory_);
    ASSERT_TRUE(made) << made.error().what;
    claims_ = std::make_unique<KubeClaims>(*source_, *std::move(made));
  }
  void SetUp() override { Open(); }

  Log log_{::open("/dev/null", O_WRONLY | O_CLOEXEC), LogLevel::kError};
  Loop unused_;
  Resolver resolver_;
  Fleet fleet_{BreakerOptions{}};
  Prober prober_{unused_, resolver_, fleet_, ProbeOptions{}, log_};
  std::optional<std::string> key_;  // what each variable of the environment holds
  Directory directory_{fleet_, prober_, [this](const std::string&) { return key_; }, log_};
  Muster muster_{directory_, log_};
  std::unique_ptr<Muster::Source> source_ =
      muster_.Open("k8s://ml/vllm:http", Muster::Rank::kFound);
  std::unique_ptr<KubeClaims> claims_;
  TimePoint now_{};
  std::optional<TimePoint> next_;
};

TEST_F(KubeClaimsTest, AnEndpointInTwoSlicesIsOneWorkerAndStaysUntilBothLackIt) {
  Set("a", {At("10.0.0.1", "u1"), At("10.0.0.2", "u2")});
  Set("b", {At("10.0.0.1", "u1")});
  EXPECT_THAT(Urls(), UnorderedElementsAre("http://10.0.0.1:8000", "http://10.0.0.2:8000"));
  const auto worker = WorkerAt("http://10.0.0.1:8000");
  Set("a", {});
  Pass(seconds(60));
  EXPECT_THAT(Urls(), ElementsAre("http://10.0.0.1:8000"));
  EXPECT_EQ(WorkerAt("http://10.0.0.1:8000"), worker);
  Set("b", {});
  Pass(seconds(60));
  EXPECT_THAT(Urls(), IsEmpty());
}

TEST_F(KubeClaimsTest, AMoveBetweenSlicesLosesNoWorkerInEitherOrder) {
  Set("a", {At("10.0.0.1", "u1")});
  const auto worker = WorkerAt("http://10.0.0.1:8000");
  Set("a", {});
  EXPECT_EQ(OriginAt("http://10.0.0.1:8000").says, SourceSays::kDrain) << "nothing new meanwhile";
  EXPECT_EQ(next_, now_ + KubeClaims::kLinger);
  Pass(KubeClaims::kLinger - seconds(1));
  Set("b", {At("10.0.0.1", "u1")});
  EXPECT_EQ(OriginAt("http://10.0.0.1:8000").says, SourceSays::kServe);
  EXPECT_EQ(next_, std::nullopt);
  Pass(seconds(60));
  EXPECT_EQ(WorkerAt("http://10.0.0.1:8000"), worker);
}

TEST_F(KubeClaimsTest, NobodyLeavesWhileTheSourceCannotBeRead) {
  Set("a", {At("10.0.0.1", "u1")});
  const auto worker = WorkerAt("http://10.0.0.1:8000");
  claims_->Set("a", {});
  Apply(true);
  now_ += seconds(3600);
  Apply(true);
  EXPECT_EQ(WorkerAt("http://10.0.0.1:8000"), worker);
  Pass(seconds(0));  // it can be read again, and what brings the worker back is on its way
  EXPECT_EQ(WorkerAt("http://10.0.0.1:8000"), worker);
  Pass(KubeClaims::kLinger);
  EXPECT_THAT(Urls(), IsEmpty());
}

TEST_F(KubeClaimsTest, DrainsAndWaitsAsTheEndpointSays) {
  Set("a", {At("10.0.0.1", "u1", SourceSays::kUnready)});
  const auto worker = WorkerAt("http://10.0.0.1:8000");
  EXPECT_EQ(OriginAt("http://10.0.0.1:8000").because, "not ready in Kubernetes");
  Set("a", {At("10.0.0.1", "u1")});
  EXPECT_EQ(OriginAt("http://10.0.0.1:8000").says, SourceSays::kServe);
  Set("a", {At("10.0.0.1", "u1", SourceSays::kDrain)});
  EXPECT_EQ(OriginAt("http://10.0.0.1:8000").because, "its pod ends");
  // Another slice that has not heard of it yet changes nothing.
  Set("b", {At("10.0.0.1", "u1")});
  EXPECT_EQ(OriginAt("http://10.0.0.1:8000").says, SourceSays::kDrain);
  EXPECT_EQ(WorkerAt("http://10.0.0.1:8000"), worker);
}

TEST_F(KubeClaimsTest, APodWithBothFamiliesIsOneWorker) {
  Set("v4", {At("10.0.0.1", "u1")});
  Set("v6", {At("fd00::1", "u1")});
  EXPECT_THAT(Urls(), ElementsAre("http://10.0.0.1:8000"));
  const auto worker = WorkerAt("http://10.0.0.1:8000");
  // A new pod whose slice of the other family comes first.
  Set("v6", {At("fd00::1", "u1"), At("fd00::2", "u2")});
  EXPECT_THAT(Urls(), ElementsAre("http://10.0.0.1:8000"));
  Set("v4", {At("10.0.0.1", "u1"), At("10.0.0.2", "u2")});
  EXPECT_THAT(Urls(), UnorderedElementsAre("http://10.0.0.1:8000", "http://10.0.0.2:8000"));
  // A pod that has only the other family.
  Set("v6", {At("fd00::3", "u3")});
  Pass(KubeClaims::kOtherFamily);
  EXPECT_THAT(Urls(), UnorderedElementsAre("http://10.0.0.1:8000", "http://10.0.0.2:8000",
                                           "http://[fd00::3]:8000"));
  // Its slice is renamed: for a moment only the other family is there.
  Set("v6", {At("fd00::1", "u1"), At("fd00::3", "u3")});
  Set("v4", {});
  Pass(seconds(1));
  Set("v4b", {At("10.0.0.1", "u1")});
  Pass(seconds(60));
  EXPECT_EQ(WorkerAt("http://10.0.0.1:8000"), worker);
  EXPECT_EQ(worker->spec().url, "http://10.0.0.1:8000");
  // The first family is gone for good.
  Set("v4b", {});
  Pass(KubeClaims::kLinger);
  Pass(KubeClaims::kLinger);
  EXPECT_THAT(Urls(), UnorderedElementsAre("http://[fd00::1]:8000", "http://[fd00::3]:8000"));
}

TEST_F(KubeClaimsTest, NobodyChangesItsAddressWhileTheSourceCannotBeRead) {
  Set("v4", {At("10.0.0.1", "u1")});
  Set("v6", {At("fd00::1", "u1")});
  const auto worker = WorkerAt("http://10.0.0.1:8000");
  Set("v4", {});
  now_ += seconds(3600);
  claims_->Set("v6", {At("fd00::1", "u1", SourceSays::kUnready)});
  Apply(true);
  EXPECT_EQ(WorkerAt("http://10.0.0.1:8000"), worker);
  Pass(seconds(1));
  Set("v4", {At("10.0.0.1", "u1")});
  Pass(seconds(60));
  EXPECT_THAT(Urls(), ElementsAre("http://10.0.0.1:8000"));
  EXPECT_EQ(WorkerAt("http://10.0.0.1:8000"), worker);
}

TEST_F(KubeClaimsTest, AChangedAddressIsAnotherWorker) {
  Set("a", {At("10.0.0.1", "u1")});
  Set("a", {At("10.0.0.9", "u1")});
  EXPECT_NE(WorkerAt("http://10.0.0.9:8000"), nullptr);
  EXPECT_EQ(OriginAt("http://10.0.0.1:8000").says, SourceSays::kDrain);
  Pass(KubeClaims::kLinger);
  EXPECT_THAT(Urls(), ElementsAre("http://10.0.0.9:8000"));
}

TEST_F(KubeClaimsTest, AnotherPodAtTheSameAddressIsAnotherEngine) {
  Set("a", {At("10.0.0.1", "u1", SourceSays::kDrain)});
  const auto worker = WorkerAt("http://10.0.0.1:8000");
  Set("a", {At("10.0.0.1", "u1", SourceSays::kDrain), At("10.0.0.1", "u2")});
  EXPECT_NE(WorkerAt("http://10.0.0.1:8000"), worker) << "its index is the old pod's";
  EXPECT_EQ(OriginAt("http://10.0.0.1:8000").says, SourceSays::kServe);
  const auto second = WorkerAt("http://10.0.0.1:8000");
  Set("a", {At("10.0.0.1", "u2")});
  EXPECT_EQ(WorkerAt("http://10.0.0.1:8000"), second);
}

PodLook PodWith(std::string uid, PodFacts facts, SourceSays says = SourceSays::kServe) {
  PodLook pod;
  pod.name = "pod-u1";
  pod.uid = std::move(uid);
  pod.says = says;
  pod.facts = std::make_shared<const PodFacts>(std::move(facts));
  return pod;
}

TEST_F(KubeClaimsTest, HasWhatItsPodSaysEvenAfterThePodIsGone) {
  const PodFacts facts{.role = "decode", .events_port = 5557, .labels = {{"app", "vllm"}}};
  claims_->SetPod(PodWith("u1", facts));
  Set("a", {At("10.0.0.1", "u1")});
  const auto worker = WorkerAt("http://10.0.0.1:8000");
  EXPECT_EQ(worker->spec().kv_events, "tcp://10.0.0.1:5557");
  EXPECT_EQ(OriginAt("http://10.0.0.1:8000").role, "decode");
  PodFacts relabelled = facts;
  relabelled.labels["app"] = "other";
  claims_->SetPod(PodWith("u1", relabelled));
  Apply();
  EXPECT_EQ(OriginAt("http://10.0.0.1:8000").labels.at("app"), "other");
  EXPECT_EQ(WorkerAt("http://10.0.0.1:8000"), worker) << "labels change in place";
  claims_->SetPod(PodWith("u1", relabelled, SourceSays::kDrain));
  Apply();
  EXPECT_EQ(OriginAt("http://10.0.0.1:8000").says, SourceSays::kDrain) << "before its slice says";
  // The next pod of the same name is not this one.
  claims_->SetPod(PodWith("u2", {}));
  Apply();
  claims_->RemovePod("pod-u1");
  Set("a", {At("10.0.0.1", "u1", SourceSays::kDrain)});
  EXPECT_EQ(WorkerAt("http://10.0.0.1:8000"), worker);
  EXPECT_EQ(OriginAt("http://10.0.0.1:8000").role, "decode");
}

TEST_F(KubeClaimsTest, FormerNamesOfAPodAreForgotten) {
  KubeSighting seen = At("10.0.0.1", "u1");
  for (int i = 0; i < 10; ++i) {
    seen.pod = fmt::format("name-{}", i);
    Set("a", {seen});
    EXPECT_EQ(claims_->named_pods(), 1u);
  }
  PodLook pod = PodWith("u1", {.role = "decode"});
  pod.name = seen.pod;
  claims_->SetPod(pod);
  Apply();
  EXPECT_EQ(OriginAt("http://10.0.0.1:8000").role, "decode") << "it has the name that it has now";
  Set("a", {});
  EXPECT_EQ(claims_->named_pods(), 0u);
}

TEST_F(KubeClaimsTest, TheOperatorsEntryCountsBeforeThePods) {
  WorkerRequest entry;
  entry.kv_events = "tcp://*:+1000";
  entry.role = "prefill";
  Open(entry);
  claims_->SetPod(PodWith("u1", {.role = "decode", .events_port = 5557, .topic = "t"}));
  Set("a", {At("10.0.0.1", "u1")});
  const auto worker = WorkerAt("http://10.0.0.1:8000");
  EXPECT_EQ(worker->spec().kv_events, "tcp://10.0.0.1:9000");
  EXPECT_EQ(worker->spec().kv_events_topic, "t");
  EXPECT_EQ(OriginAt("http://10.0.0.1:8000").role, "prefill");
}

TEST_F(KubeClaimsTest, SpeaksHttpsWithTheNameOfTheService) {
  KubeSighting seen = At("10.0.0.1", "u1");
  seen.tls = true;
  Set("a", {seen});
  const auto worker = WorkerAt("https://10.0.0.1:8000");
  ASSERT_NE(worker, nullptr);
  EXPECT_EQ(worker->spec().host_header, "vllm.ml.svc:8000");
  EXPECT_EQ(muster_.Sources().at(0).workers, 1u);
}

TEST_F(KubeClaimsTest, AnEntryThatCannotApplyIsRefused) {
  WorkerRequest entry;
  entry.kv_events = "tcp://10.0.0.1:5557";
  const auto made = KubeEntry::Make(entry, "", directory_);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().what, HasSubstr("write tcp://*:PORT"));
}

TEST_F(KubeClaimsTest, WhatWasRefusedIsTriedAgain) {
  WorkerRequest entry;
  entry.from = WorkerRequest::From::kOperator;
  entry.api_key_env = "KEY";
  key_ = "secret";
  Open(entry);
  key_.reset();
  Set("a", {At("10.0.0.1", "u1")});
  EXPECT_THAT(Urls(), IsEmpty());
  EXPECT_THAT(claims_->problem(), HasSubstr("KEY"));
  EXPECT_EQ(next_, now_ + KubeClaims::kRefusalRetry);
  now_ += KubeClaims::kRefusalRetry;
  Apply(true);  // whether the API server is there or not
  EXPECT_EQ(next_, now_ + KubeClaims::kRefusalRetry);
  key_ = "secret";
  Pass(KubeClaims::kRefusalRetry);
  EXPECT_THAT(Urls(), ElementsAre("http://10.0.0.1:8000"));
  EXPECT_THAT(claims_->problem(), IsEmpty());
  EXPECT_EQ(next_, std::nullopt);
}

TEST_F(KubeClaimsTest, IsBounded) {
  claims_ = std::make_unique<KubeClaims>(
      *source_, *KubeEntry::Make({.url = "k8s://ml/vllm:http"}, "", directory_), 30);
  for (int slice = 0; slice < 4; ++slice) {
    std::vector<KubeSighting> seen;
    for (int i = 0; i < 10; ++i) seen.push_back(At(fmt::format("10.0.{}.{}", slice, i), ""));
    Set(fmt::format("s{}", slice), seen);
  }
  EXPECT_EQ(source_->Workers().size(), 30u);
  EXPECT_THAT(claims_->problem(), HasSubstr("more than 30 endpoints"));
  // There is room again.
  Set("s0", {});
  Set("s3", {At("10.0.3.1", "")});
  EXPECT_NE(WorkerAt("http://10.0.3.1:8000"), nullptr);
  EXPECT_THAT(claims_->problem(), IsEmpty());
}

TEST_F(KubeClaimsTest, PodsAreBounded) {
  claims_ = std::make_unique<KubeClaims>(
      *source_, *KubeEntry::Make({.url = "k8s://ml/vllm:http"}, "", directory_), 3);
  for (int i = 0; i < 5; ++i) {
    PodLook pod;
    pod.name = fmt::format("pod-{}", i);
    EXPECT_EQ(claims_->SetPod(pod), i < 3);
  }
  EXPECT_THAT(claims_->problem(), HasSubstr("more than 3 pods"));
  claims_->RemovePod("pod-4");
  claims_->RemovePod("pod-0");
  EXPECT_THAT(claims_->problem(), HasSubstr("more than 3 pods")) << "pod-3 is still not known";
  PodLook pod;
  pod.name = "pod-3";
  EXPECT_TRUE(claims_->SetPod(pod));
  EXPECT_THAT(claims_->problem(), IsEmpty());
}

}  // namespace
}  // namespace fathom
