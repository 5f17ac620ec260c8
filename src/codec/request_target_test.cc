#include "codec/request_target.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

std::string Parts(std::string_view target) {
  const RequestTarget parts = RequestTarget::Of(target);
  return std::string(parts.authority) + " " + std::string(parts.path) + " " +
         std::string(parts.query);
}

TEST(RequestTarget, SplitsPathAndQuery) {
  EXPECT_EQ(Parts("/v1/models"), " /v1/models ");
  EXPECT_EQ(Parts("/v1/models?a=b?c"), " /v1/models ?a=b?c");
  EXPECT_EQ(Parts("/?"), " / ?");
  EXPECT_EQ(Parts("*"), " * ");
}

TEST(RequestTarget, TakesNoPathFromAQuery) {
  EXPECT_EQ(Parts("http://x?y=/v1/chat/completions"), "x / ?y=/v1/chat/completions");
  EXPECT_EQ(Parts("http://x:80?"), "x:80 / ?");
  EXPECT_EQ(Parts("/a?u=http://x/b"), " /a ?u=http://x/b");
}

TEST(RequestTarget, KnowsSchemesInAnyCase) {
  EXPECT_EQ(Parts("HTTP://h:8000/v1/models?q"), "h:8000 /v1/models ?q");
  EXPECT_EQ(Parts("https://[::1]/"), "[::1] / ");
  EXPECT_EQ(Parts("http://h"), "h / ");
}

TEST(RequestTarget, FindsDotSegmentsInEveryForm) {
  for (const char* path :
       {"/v1/../../tenant-b/v1/chat/completions", "/..", "/.", "/v1/./models", "/v1/%2e%2e/x",
        "/v1/%2E./x", "/v1/.%2e/x", "/v1/%2e", "/v1/..%2fx", "/v1/..%5cx", "/v1/..\\x",
        "/v1\\..\\x", "/v1/%252e%252e/x", "/v1/..;/x", "/v1/..;a=b/x", "/v1/%2e%2e%3b/x"}) {
    EXPECT_TRUE(HasDotSegments(path)) << path;
    EXPECT_FALSE(HasOneReading(path)) << path;
  }
}

TEST(RequestTarget, LeavesOtherDotsAlone) {
  for (const char* path : {"/v1/models/gpt-4.1", "/v1/models/gpt-4%2e1", "/.well-known/x",
                           "/v1/models/...", "/a/..b", "/a/b..", "/", "*"}) {
    EXPECT_FALSE(HasDotSegments(path)) << path;
    EXPECT_TRUE(HasOneReading(path)) << path;
  }
}

TEST(RequestTarget, FindsPathsThatServersReadDifferently) {
  for (const char* path :
       {"/v1//x", "//v1/x", "/v1/a%2fb", "/v1/a%2Fb", "/v1/a%5cb", "/v1/a\\b", "/v1/%00",
        "/v1/a%0d%0ab", "/v1/%7f", "/v1/%2541", "/v1/%", "/v1/%4", "/v1/%zz", "/v1/a%"}) {
    EXPECT_FALSE(HasOneReading(path)) << path;
  }
  for (const char* path : {"/v1/files/a%20b", "/v1/files/%C3%A4", "/v1/responses/resp_1/cancel"}) {
    EXPECT_TRUE(HasOneReading(path)) << path;
  }
}

}  // namespace
}  // namespace fathom
