#include "io/kube/kube_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/kube/line_splitter.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;

uint64_t Hash(std::string_view text) { return KubeContentHash(*Json::Parse(text)); }

TEST(KubeEventTest, ReadsEachKind) {
  const auto added = ReadKubeEvent(
      R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"},"x":1}})");
  ASSERT_TRUE(added) << added.error().what;
  EXPECT_EQ(added->kind, KubeEvent::Kind::kAdded);
  EXPECT_EQ(added->name, "a");
  EXPECT_EQ(added->version, "7");
  const auto bookmark =
      ReadKubeEvent(R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"v 9"}}})");
  ASSERT_TRUE(bookmark) << bookmark.error().what;
  EXPECT_EQ(bookmark->version, "v 9");
  const auto error = ReadKubeEvent(R"({"type":"ERROR","object":{"kind":"Status","code":410}})");
  ASSERT_TRUE(error) << error.error().what;
  EXPECT_EQ(error->code, 410);
}

TEST(KubeEventTest, RefusesWhatIsNone) {
  const std::string long_name(kMaxKubeName + 1, 'a');
  for (const std::string& line :
       {std::string(), std::string("{}"), std::string("[]"), std::string("nonsense"),
        std::string(R"({"type":"ADDED","object":[]})"),
        std::string(R"({"type":"RENAMED","object":{"metadata":{"resourceVersion":"1"}}})"),
        std::string(R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})"),
        std::string(R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}})"),
        std::string(R"({"type":"ADDED","object":{"metadata":{"name":1,"resourceVersion":"1"}}})"),
        R"({"type":"ADDED","object":{"metadata":{"name":")" + long_name +
            R"(","resourceVersion":"1"}}})"}) {
    EXPECT_FALSE(ReadKubeEvent(line)) << line;
  }
}

TEST(KubeEventTest, AnErrorWithoutACodeIsTheServers) {
  for (const char* line :
       {R"({"type":"ERROR","object":{}})", R"({"type":"ERROR","object":{"code":-1}})",
        R"({"type":"ERROR","object":{"code":99999999999}})"}) {
    const auto event = ReadKubeEvent(line);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->code, 500) << line;
  }
}

TEST(KubeEventTest, ReadsAPage) {
  const auto page = ReadKubePage(
      R"({"kind":"List","metadata":{"resourceVersion":"5","continue":"x/y"},"items":[ 1, 2 ]})");
  ASSERT_TRUE(page) << page.error().what;
  EXPECT_EQ(page->version, "5");
  EXPECT_EQ(page->next, "x/y");
  EXPECT_EQ(page->items, "[ 1, 2 ]");
  const auto none = ReadKubePage(R"({"items":null,"metadata":{"resourceVersion":"5"}})");
  ASSERT_TRUE(none) << none.error().what;
  EXPECT_EQ(none->items, "[]");
}

TEST(KubeEventTest, TheContentIsAllThatMatters) {
  const uint64_t hash =
      Hash(R"({"metadata":{"name":"a","resourceVersion":"1"},"s":{"x":1,"y":2}})");
  EXPECT_EQ(hash, Hash(R"({"s":{"y":2,"x":1},"kind":"K","apiVersion":"v1",)"
                       R"("metadata":{"resourceVersion":"2","managedFields":[1],"name":"a"}})"));
  for (const char* other : {R"({"metadata":{"name":"a"},"s":{"x":2,"y":1}})",
                            R"({"metadata":{"name":"a"},"s":{"x":1}})",
                            R"({"metadata":{"name":"a"},"s":{"x":"1","y":2}})",
                            R"({"metadata":{"name":"a"},"s":{"x":1,"y":2,"z":null}})",
                            R"({"metadata":{"name":"a"},"s":{"x":1,"y":2,"resourceVersion":"1"}})",
                            R"({"metadata":{"name":"a","labels":{"l":""}},"s":{"x":1,"y":2}})",
                            R"({"metadata":{"name":"a","uid":"u"},"s":{"x":1,"y":2}})"}) {
    EXPECT_NE(hash, Hash(other)) << other;
  }
  EXPECT_NE(Hash(R"({"s":[[1],[2]]})"), Hash(R"({"s":[[1,2]]})"));
  EXPECT_NE(Hash(R"({"s":[]})"), Hash(R"({"s":{}})"));
  EXPECT_NE(Hash(R"({"s":true})"), Hash(R"({"s":1})"));
}

TEST(LineSplitterTest, LinesAreTheSameHoweverTheyCome) {
  const std::string text = "one\n\ntwo\nthree";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    LineSplitter splitter;
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size(); at += piece) {
      splitter.Feed(std::string_view(text).substr(at, piece));
      while (const auto line = splitter.Next()) lines.emplace_back(*line);
    }
    EXPECT_THAT(lines, ElementsAre("one", "", "two"));
    EXPECT_EQ(splitter.open(), 5u);
  }
}

}  // namespace
}  // namespace fathom
