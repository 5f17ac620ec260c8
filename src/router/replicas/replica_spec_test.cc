#include "router/replicas/replica_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

NatsReplicas Nats(std::string_view text) {
  const auto spec = ParseReplicaSpec(text);
  EXPECT_TRUE(spec) << spec.error().what;
  return spec ? std::get<NatsReplicas>(*spec) : NatsReplicas();
}

std::vector<MeshPlace> Mesh(std::string_view text) {
  const auto spec = ParseReplicaSpec(text);
  EXPECT_TRUE(spec) << spec.error().what;
  return spec ? std::get<MeshReplicas>(*spec).places : std::vector<MeshPlace>();
}

std::string Complaint(std::string_view text) {
  const auto spec = ParseReplicaSpec(text);
  EXPECT_FALSE(spec) << text;
  return spec ? "" : spec.error().what;
}

TEST(ReplicaSpec, ReadsNatsServers) {
  EXPECT_EQ(Nats("nats://nats.example:4223"), (NatsReplicas{.urls = {"nats://nats.example:4223"}}));
  EXPECT_EQ(Nats("nats://a,b:1,nats://[::1]:2,[fd00::1]/").urls,
            (std::vector<std::string>{"nats://a:4222", "nats://b:1", "nats://[::1]:2",
                                      "nats://[fd00::1]:4222"}));
  EXPECT_TRUE(Nats("tls://a:4222").tls);
}

TEST(ReplicaSpec, TakesCredentialsOutOfTheUrls) {
  EXPECT_EQ(
      Nats("nats://ann:p%40ss:w@a:1,b:2"),
      (NatsReplicas{.urls = {"nats://a:1", "nats://b:2"}, .user = "ann", .password = "p@ss:w"}));
  EXPECT_EQ(Nats("nats://t0ken@a").token, "t0ken");
  EXPECT_EQ(Nats("nats://u:p@a,nats://u:p@b").user, "u");
}

TEST(ReplicaSpec, ReadsReplicasThatAreReachedDirectly) {
  EXPECT_EQ(Mesh("zmq://a:7000,b:7001, zmq://[::1]:7002"),
            (std::vector<MeshPlace>{{"a", 7000}, {"b", 7001}, {"::1", 7002}}));
  EXPECT_EQ(Mesh("dns+zmq://fathom-peers:7000"),
            (std::vector<MeshPlace>{{"fathom-peers", 7000, MeshFinding::kDns}}));
  EXPECT_EQ(Mesh("k8s+zmq://ml/fathom-peers:7000"),
            (std::vector<MeshPlace>{{"fathom-peers", 7000, MeshFinding::kKubernetes, "ml"}}));
  EXPECT_EQ(Mesh("k8s+zmq://ml/fathom-peers:7000")[0].ToString(), "ml/fathom-peers:7000");
  EXPECT_EQ(Mesh("zmq://[::1]:7002")[0].ToString(), "[::1]:7002");
}

TEST(ReplicaSpec, NamesWhatIsWrongAndTheForm) {
  EXPECT_THAT(Complaint(""), HasSubstr("dns+zmq://NAME:PORT"));
  EXPECT_THAT(Complaint("fathom-peers:7000"), HasSubstr("'fathom-peers:7000' has no scheme"));
  EXPECT_THAT(Complaint("http://a:1"), HasSubstr("'http://' is not known"));
  EXPECT_THAT(Complaint("zmq://a"), HasSubstr("'a'"));
  EXPECT_THAT(Complaint("zmq://a:0"), HasSubstr("'a:0'"));
  EXPECT_THAT(Complaint("zmq://:7000"), HasSubstr("':7000'"));
  EXPECT_THAT(Complaint("zmq://a b:1"), HasSubstr("'a'"));
  EXPECT_THAT(Complaint("dns+zmq://10.0.0.1:7000"), HasSubstr("write zmq://10.0.0.1:7000"));
  for (const char* const text : {"k8s+zmq://fathom-peers:7000", "k8s+zmq://ml/fathom-peers",
                                 "k8s+zmq:///a:1", "k8s+zmq://ml/a,b=c:1", "k8s+zmq://m l/a:1"}) {
    EXPECT_THAT(Complaint(text), HasSubstr("k8s+zmq://NAMESPACE/SERVICE:PORT"));
  }
  EXPECT_THAT(Complaint("zmq://a:1,nats://b:2"), HasSubstr("one kind"));
  EXPECT_THAT(Complaint("nats://a:1,zmq://b:2"), HasSubstr("one kind"));
  EXPECT_THAT(Complaint("nats://a:99999"), HasSubstr("'a:99999'"));
}

TEST(ReplicaSpec, NeverRepeatsCredentials) {
  for (const std::string_view text :
       {"nats://ann:s3cret@a:1,nats://bob:s3cret@b:2", "nats://ann:s3cret@:x",
        "nats://s3cret@a b@:1", "ann:s3cret@a:1", "tls://u:s3cret@[::1:4222",
        "nats://ann:s3cret,more@a:1", "ann:s3cret@a://b"}) {
    EXPECT_THAT(Complaint(text), Not(HasSubstr("s3cret"))) << text;
  }
}

}  // namespace
}  // namespace fathom
