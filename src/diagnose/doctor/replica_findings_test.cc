#include "diagnose/doctor/replica_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

RouterLook RouterOfTwo() {
  RouterLook router;
  router.url = "http://r:1";
  router.carrier = {.known = true, .group = "prod", .status = "ok"};
  router.replicas = {{.id = "a", .self = true, .workers = 8}, {.id = "b", .workers = 8}};
  return router;
}

TEST(ReplicaFindings, NothingForAGroupThatIsWellOrNoGroup) {
  EXPECT_THAT(ReplicaFindings(RouterOfTwo()), IsEmpty());
  EXPECT_THAT(ReplicaFindings(RouterLook{}), IsEmpty());
}

TEST(ReplicaFindings, SaysWhatTheCarrierSays) {
  RouterLook router = RouterOfTwo();
  router.carrier.status = "down";
  router.carrier.error = "Authorization Violation";
  const auto findings = ReplicaFindings(router);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kReplicaAlone);
  EXPECT_THAT(findings[0].evidence.at(0), HasSubstr("Authorization Violation"));
}

TEST(ReplicaFindings, ARouterThatHearsNobody) {
  RouterLook router = RouterOfTwo();
  router.replicas.pop_back();
  const auto findings = ReplicaFindings(router);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_THAT(findings[0].message, HasSubstr("hears no other router"));
}

TEST(ReplicaFindings, NamesThoseThatDoNotHear) {
  RouterLook router = RouterOfTwo();
  router.replicas[1].hears_us = false;
  router.replicas[1].unheard = 1;
  EXPECT_THAT(ReplicaFindings(router), IsEmpty()) << "they have just met";
  router.replicas[1].unheard = 5;
  const auto findings = ReplicaFindings(router);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_THAT(findings[0].evidence.at(0), HasSubstr("not hearing it: b"));
}

TEST(ReplicaFindings, TheSameIdTwice) {
  RouterLook router = RouterOfTwo();
  router.carrier.conflicts = 3;
  const auto findings = ReplicaFindings(router);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_THAT(findings[0].message, HasSubstr("same replica id"));
}

TEST(ReplicaFindings, RoutersOfDifferentModelsHaveDifferentWorkers) {
  RouterLook router = RouterOfTwo();
  router.replicas[1].workers = 7;
  router.replicas[1].models = {"llama-*"};
  EXPECT_THAT(ReplicaFindings(router), SizeIs(0));
}

TEST(ReplicaFindings, DifferentWorkers) {
  RouterLook router = RouterOfTwo();
  router.replicas[1].workers = 7;
  const auto findings = ReplicaFindings(router);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kReplicasDiffer);
  EXPECT_THAT(findings[0].evidence.at(0), HasSubstr("b has 7"));
}

TEST(ReplicaFindings, AsManyWorkersThatAreOthers) {
  RouterLook router = RouterOfTwo();
  router.replicas[0].worker_set = "00aa";
  EXPECT_THAT(ReplicaFindings(router), IsEmpty()) << "an older release does not tell";
  router.replicas[1].worker_set = "00ab";
  const auto findings = ReplicaFindings(router);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kReplicasDiffer);
  EXPECT_THAT(findings[0].evidence.at(0), HasSubstr("b has 8 others"));
}

TEST(ReplicaFindings, AWordThatIsOld) {
  RouterLook router = RouterOfTwo();
  router.replicas[1].age = 1.2;
  EXPECT_THAT(ReplicaFindings(router), IsEmpty());
  router.replicas[1].age = 4;
  const auto findings = ReplicaFindings(router);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kReplicaAlone);
  EXPECT_THAT(findings[0].evidence.at(0), HasSubstr("b was heard 4.0 s ago"));
}

TEST(ReplicaFindings, ACarrierThatIsUpAndDoesNotWorkFully) {
  RouterLook router = RouterOfTwo();
  router.carrier.kind = "zmq";
  router.carrier.error = "10.0.0.9:5600: refused";
  EXPECT_THAT(ReplicaFindings(router), IsEmpty());
  router.carrier.kind = "nats";
  router.carrier.error = "Permissions Violation for Subscription";
  const auto findings = ReplicaFindings(router);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_THAT(findings[0].evidence.at(0), HasSubstr("Permissions Violation"));
}

TEST(ReplicaFindings, ReadsThePage) {
  RouterLook look;
  ASSERT_TRUE(ReadRouterHealth(
      R"({"workers_total":1,"version":"1","replicas":[{"id":"a","self":true,"age_seconds":0,
          "workers":1,"hears_us":true},{"id":"b","self":false,"age_seconds":1.5,"workers":2,
          "worker_set":"00000000000000ff","hears_us":false,"unheard_seconds":7.5}],"replica_carrier":{"kind":"nats","group":"g","status":"down",
          "error":"refused","id_conflicts":2}})",
      look));
  ASSERT_THAT(look.replicas, SizeIs(2));
  EXPECT_EQ(look.replicas[1].id, "b");
  EXPECT_EQ(look.replicas[1].age, 1.5);
  EXPECT_EQ(look.replicas[1].worker_set, "00000000000000ff");
  EXPECT_EQ(look.carrier.kind, "nats");
  EXPECT_FALSE(look.replicas[1].hears_us);
  EXPECT_EQ(look.replicas[1].unheard, 7.5);
  EXPECT_TRUE(look.carrier.known);
  EXPECT_EQ(look.carrier.error, "refused");
  EXPECT_EQ(look.carrier.conflicts, 2u);
}

}  // namespace
}  // namespace fathom
