#include "codec/header_list.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> ElementsOf(std::string_view list) {
  std::vector<std::string> out;
  ForEachElement(list, [&](std::string_view element) { out.emplace_back(element); });
  return out;
}

TEST(HeaderList, FindsTheFirstOfAName) {
  HeaderList headers;
  headers.Push({"X-A", "1", HeaderName::kOther});
  headers.Push({"x-a", "2", HeaderName::kOther});
  headers.Push({"Date", "now", HeaderName::kDate});
  EXPECT_EQ(headers.Find("x-A")->value, "1");
  EXPECT_EQ(headers.Find(HeaderName::kDate)->value, "now");
  EXPECT_EQ(headers.Find("x-b"), nullptr);
  EXPECT_EQ(headers.Find(HeaderName::kUpgrade), nullptr);
}

TEST(HeaderList, ForgetsEverythingWhenCleared) {
  HeaderList headers;
  headers.Push({"Host", "a", HeaderName::kHost});
  headers.Clear();
  EXPECT_FALSE(headers.Has(HeaderName::kHost));
  EXPECT_EQ(headers.Find("Host"), nullptr);
  EXPECT_THAT(headers.all(), IsEmpty());
}

TEST(HeaderList, SaysWhenItIsFull) {
  HeaderList headers;
  for (size_t i = 0; i < HeaderList::kMax; ++i) EXPECT_TRUE(headers.Push({"a", "b"}));
  EXPECT_FALSE(headers.Push({"a", "b"}));
  EXPECT_EQ(headers.all().size(), HeaderList::kMax);
}

TEST(HopByHop, CoversConnectionHeadersAndWhatTheyList) {
  HeaderList headers;
  headers.Push({"Connection", "X-Private, content-length ,host", HeaderName::kConnection});
  headers.Push({"Host", "a", HeaderName::kHost});
  headers.Push({"Connection", "x-other", HeaderName::kConnection});
  headers.Push({"TE", "trailers", HeaderName::kTe});
  headers.Push({"Transfer-Encoding", "chunked", HeaderName::kTransferEncoding});
  headers.Push({"x-private", "1"});
  headers.Push({"X-Other", "2"});
  headers.Push({"X-Public", "3"});
  headers.Push({"Content-Length", "0", HeaderName::kContentLength});
  std::vector<std::string_view> relayed;
  for (const Header& header : headers.all()) {
    if (!IsHopByHop(header, headers)) relayed.push_back(header.name);
  }
  EXPECT_THAT(relayed, ElementsAre("Host", "X-Public", "Content-Length"));
}

TEST(ForEachElement, TakesAListApart) {
  EXPECT_THAT(ElementsOf("a"), ElementsAre("a"));
  EXPECT_THAT(ElementsOf(" a,\tb c , d"), ElementsAre("a", "b c", "d"));
  EXPECT_THAT(ElementsOf(""), IsEmpty());
}

}  // namespace
}  // namespace fathom
