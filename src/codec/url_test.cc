#include "codec/url.h"

#include <gmock/gmock.h>

namespace fathom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Url ParsedUrl(std::string_view text) {
  Result<Url> url = Url::Parse(text);
  EXPECT_TRUE(url) << text;
  return url.value_or(Url{});
}

std::string UrlError(std::string_view text) {
  const Result<Url> url = Url::Parse(text);
  if (url) return "accepted";
  EXPECT_EQ(url.error().blame, Blame::kCaller);
  return url.error().what;
}

TEST(Url, HasItsParts) {
  const Url url = ParsedUrl("http://Worker-1.Example:8000/base/v2/");
  EXPECT_EQ(url.scheme, "http");
  EXPECT_EQ(url.host, "worker-1.example");
  EXPECT_EQ(url.port, 8000);
  EXPECT_EQ(url.path, "/base/v2");
  EXPECT_FALSE(url.tls());
}

TEST(Url, KnowsDefaultPorts) {
  EXPECT_EQ(ParsedUrl("http://a").port, 80);
  EXPECT_EQ(ParsedUrl("HTTPS://a/").port, 443);
  EXPECT_TRUE(ParsedUrl("https://a").tls());
}

TEST(Url, TakesIpv6InBrackets) {
  const Url url = ParsedUrl("http://[0:0::0001]:9000");
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.HostHeader(), "[::1]:9000");
  EXPECT_EQ(url.ToString(), "http://[::1]:9000");
}

TEST(Url, LeavesDefaultPortsOutOfTheHostHeader) {
  EXPECT_EQ(ParsedUrl("http://a:80").HostHeader(), "a");
  EXPECT_EQ(ParsedUrl("https://a").HostHeader(), "a");
  EXPECT_EQ(ParsedUrl("https://a:80").HostHeader(), "a:80");
}

TEST(Url, HasOneSpelling) {
  for (const std::string_view text : {"http://a", "HTTP://A/", "http://a:80", "http://a:080//"}) {
    EXPECT_EQ(ParsedUrl(text).ToString(), "http://a:80") << text;
    EXPECT_EQ(ParsedUrl(text), ParsedUrl("http://a")) << text;
  }
  EXPECT_EQ(ParsedUrl("https://a/b").ToString(), "https://a:443/b");
  EXPECT_EQ(ParsedUrl(ParsedUrl("http://[::1]/x").ToString()), ParsedUrl("http://[::1]/x"));
}

TEST(Url, RefusesWhatIsNoWorker) {
  for (const std::string_view text : {"",
                                      "a:8000",
                                      "localhost",
                                      "ftp://a",
                                      "http:/a",
                                      "http://",
                                      "http://:80",
                                      "http:///x",
                                      "http://a b",
                                      "http://a/b c",
                                      "http://a\n",
                                      "http://a/\x80",
                                      "http://a:",
                                      "http://a:0",
                                      "http://a:65536",
                                      "http://a:-1",
                                      "http://a:8x",
                                      "http://a?x",
                                      "http://a/#x",
                                      "http://u@a",
                                      "http://[::1",
                                      "http://[::1]x",
                                      "http://[g]",
                                      "http://::1",
                                      "http://a,b",
                                      "http://a%20b",
                                      "http://[]"}) {
    const std::string error = UrlError(text);
    EXPECT_THAT(error, HasSubstr("a URL looks like http://host:port/base")) << text;
  }
}

TEST(Url, SaysWhatIsWrongWithWhichText) {
  EXPECT_THAT(UrlError("http://a:99999"), HasSubstr("\"http://a:99999\": the port"));
  EXPECT_THAT(UrlError("http://a?b"), HasSubstr("query"));
  EXPECT_THAT(UrlError("http://a#b"), HasSubstr("fragment"));
}

TEST(Url, KeepsPasswordsOutOfErrors) {
  for (const std::string_view text :
       {"http://user:secret@a:8000", "user:secret@a", "http://user:secret@a b"}) {
    EXPECT_THAT(UrlError(text), Not(HasSubstr("secret"))) << text;
  }
}

TEST(PercentDecode, DecodesWhatIsEscapedAndLeavesTheRest) {
  EXPECT_EQ(PercentDecode("meta%2Fllama-3%2e1"), "meta/llama-3.1");
  EXPECT_EQ(PercentDecode("100%"), "100%");
  EXPECT_EQ(PercentDecode("%2"), "%2");
  EXPECT_EQ(PercentDecode("%zz%41"), "%zzA");
  EXPECT_EQ(PercentDecode(""), "");
}

}  // namespace
}  // namespace fathom
