#include "router/sources/worker_entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "router/sources/source_defaults.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string EntryProblem(std::string_view json) {
  const auto entry = ReadWorkerEntry(json);
  return entry ? "" : entry.error().what;
}

TEST(WorkerEntryJson, IsAUrlOrAMap) {
  EXPECT_EQ(ReadWorkerEntry(R"("http://a:1")")->url, "http://a:1");
  const auto entry = ReadWorkerEntry(
      R"({"url":"https://a:1","kv_events":"tcp://a:5557","kv_events_replay":"tcp://a:5558",)"
      R"("kv_events_topic":"","api_key_env":"KEY","ca_file":"/ca","role":"decode",)"
      R"("labels":{"tier":"gpu","zone":"b"}})");
  ASSERT_TRUE(entry) << entry.error().what;
  EXPECT_EQ(entry->url, "https://a:1");
  EXPECT_EQ(entry->kv_events, "tcp://a:5557");
  EXPECT_EQ(entry->kv_events_replay, "tcp://a:5558");
  EXPECT_EQ(entry->kv_events_topic, "");
  EXPECT_EQ(entry->api_key_env, "KEY");
  EXPECT_EQ(entry->ca_file, "/ca");
  EXPECT_EQ(entry->role, "decode");
  EXPECT_THAT(entry->labels, ElementsAre(Pair("tier", "gpu"), Pair("zone", "b")));
  EXPECT_EQ(entry->from, WorkerRequest::From::kOutside);
}

TEST(WorkerEntryJson, NamesWhatIsWrong) {
  EXPECT_EQ(EntryProblem(R"({"url":"http://a","rol":"decode"})"),
            "unknown worker setting 'rol'; did you mean 'role'?");
  EXPECT_EQ(EntryProblem(R"({"url":"http://a","labels":["x"]})"),
            "'labels' must be an object of strings");
  EXPECT_EQ(EntryProblem(R"({"url":"http://a","labels":{"x":1}})"),
            "label 'x' must be a string with a name");
  EXPECT_EQ(EntryProblem(R"({"url":"http://a","labels":{"":"x"}})"),
            "label '' must be a string with a name");
  EXPECT_EQ(EntryProblem(R"({"url":1})"), "'url' must be a string");
  EXPECT_EQ(EntryProblem("{}"), "'url' is missing");
  EXPECT_THAT(EntryProblem("[]"), HasSubstr("send a worker as"));
  EXPECT_THAT(EntryProblem("\"" + std::string(kLongestWorkerEntry, 'a') + "\""),
              HasSubstr("at most 65536 bytes"));
}

TEST(SourceDefaults, FillWhatAWorkerDoesNotSay) {
  const auto defaults = SourceDefaults::Of({.url = "file:///w.yaml",
                                            .kv_events = "tcp://*:+1000",
                                            .kv_events_replay = "tcp://*:5558",
                                            .kv_events_topic = "kv",
                                            .api_key_env = "KEY",
                                            .ca_file = "/ca",
                                            .host_name = {},
                                            .role = "decode",
                                            .labels = {{"tier", "gpu"}, {"zone", "a"}},
                                            .from = WorkerRequest::From::kOperator});
  ASSERT_TRUE(defaults) << defaults.error().what;
  WorkerRequest bare;
  bare.url = "http://[fd00::1]:8000";
  bare.labels = {{"zone", "b"}};
  const auto filled = defaults->Fill(bare);
  ASSERT_TRUE(filled) << filled.error().what;
  EXPECT_EQ(filled->kv_events, "tcp://[fd00::1]:9000");
  EXPECT_EQ(filled->kv_events_replay, "tcp://[fd00::1]:5558");
  EXPECT_EQ(filled->kv_events_topic, "kv");
  EXPECT_EQ(filled->api_key_env, "KEY");
  EXPECT_EQ(filled->from, WorkerRequest::From::kOperator);
  EXPECT_EQ(filled->ca_file, "");  // it has no certificate
  EXPECT_EQ(filled->role, "decode");
  EXPECT_THAT(filled->labels, ElementsAre(Pair("tier", "gpu"), Pair("zone", "b")));
}

TEST(SourceDefaults, DoNotReplaceWhatAWorkerSays) {
  const auto defaults = SourceDefaults::Of({.url = "file:///w.yaml",
                                            .kv_events = "tcp://*:5557",
                                            .kv_events_replay = {},
                                            .kv_events_topic = "kv",
                                            .api_key_env = "OPERATORS",
                                            .ca_file = "/ca",
                                            .host_name = {},
                                            .role = "decode",
                                            .labels = {},
                                            .from = WorkerRequest::From::kOperator});
  WorkerRequest own;
  own.url = "https://a:1";
  own.kv_events = "tcp://b:2";
  own.kv_events_topic = "";
  own.api_key_env = "OTHER";
  own.role = "prefill";
  const auto filled = defaults->Fill(own);
  ASSERT_TRUE(filled) << filled.error().what;
  EXPECT_EQ(filled->kv_events, "tcp://b:2");
  EXPECT_EQ(filled->kv_events_topic, "");
  EXPECT_EQ(filled->api_key_env, "OTHER");
  // Otherwise a file could name any variable of the router.
  EXPECT_EQ(filled->from, WorkerRequest::From::kOutside);
  EXPECT_EQ(filled->ca_file, "/ca");
  EXPECT_EQ(filled->role, "prefill");
  EXPECT_FALSE(defaults->Fill({.url = "k8s://a/b:1",
                               .kv_events = {},
                               .kv_events_replay = {},
                               .kv_events_topic = {},
                               .api_key_env = {},
                               .ca_file = {},
                               .host_name = {},
                               .role = {},
                               .labels = {}}));
}

TEST(SourceDefaults, AnEndpointThatFitsOneWorkerOnlyIsRefused) {
  WorkerRequest source;
  source.kv_events = "tcp://10.0.0.1:5557";
  EXPECT_THAT(SourceDefaults::Of(source).error().what, HasSubstr("write tcp://*:PORT"));
}

}  // namespace
}  // namespace fathom
