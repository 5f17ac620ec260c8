#include "codec/http_head.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace fathom {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kTypical =
    "POST /v1/chat/completions?x=1 HTTP/1.1\r\n"
    "Host: fathom.test:8000\r\n"
    "User-Agent: python-httpx/0.27\r\n"
    "accept: */*\r\n"
    "Content-Type: application/json\r\n"
    "AUTHORIZATION: Bearer sk-none\r\n"
    "X-Empty:\r\n"
    "X-Spaced: \t a b\t \r\n"
    "x-request-id: 42\r\n"
    "Content-Length: 311\r\n"
    "\r\n";

// A request with Host and the given lines (each with its CRLF).
std::string Request(std::string_view lines) {
  return fmt::format("POST / HTTP/1.1\r\nHost: a\r\n{}\r\n", lines);
}

std::string Response(std::string_view status, std::string_view lines) {
  return fmt::format("HTTP/1.1 {}\r\n{}\r\n", status, lines);
}

std::string RequestError(std::string_view head) {
  RequestHead out;
  const Result<void> result = ParseRequestHead(head, out);
  if (result) return "accepted";
  EXPECT_EQ(result.error().blame, Blame::kCaller);
  return result.error().what;
}

std::string ResponseError(std::string_view head) {
  ResponseHead out;
  const Result<void> result = ParseResponseHead(head, false, out);
  if (result) return "accepted";
  EXPECT_EQ(result.error().blame, Blame::kPeer);
  return result.error().what;
}

RequestHead Accepted(std::string_view head) {
  RequestHead out;
  const Result<void> result = ParseRequestHead(head, out);
  EXPECT_TRUE(result) << head << result.error().what;
  return out;
}

ResponseHead AcceptedResponse(std::string_view head, bool to_head_request = false) {
  ResponseHead out;
  const Result<void> result = ParseResponseHead(head, to_head_request, out);
  EXPECT_TRUE(result) << head << result.error().what;
  return out;
}

TEST(RequestHead, HasWhatTheRequestLineSays) {
  const RequestHead head = Accepted(kTypical);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/v1/chat/completions?x=1");
  EXPECT_EQ(head.minor_version, 1);
}

TEST(RequestHead, KeepsHeadersInOrderWithTrimmedValues) {
  const RequestHead head = Accepted(kTypical);
  const auto headers = head.headers.all();
  ASSERT_EQ(headers.size(), 9u);
  EXPECT_EQ(headers[0].name, "Host");
  EXPECT_EQ(headers[0].value, "fathom.test:8000");
  EXPECT_EQ(headers[5].name, "X-Empty");
  EXPECT_EQ(headers[5].value, "");
  EXPECT_EQ(headers[6].value, "a b");
  EXPECT_EQ(headers[8].value, "311");
}

TEST(RequestHead, KnowsTheHeadersARouterTreatsSpeciallyInAnyCase) {
  using enum HeaderName;
  constexpr std::pair<std::string_view, HeaderName> kKnown[] = {
      {"te", kTe},
      {"date", kDate},
      {"server", kServer},
      {"trailer", kTrailer},
      {"upgrade", kUpgrade},
      {"connection", kConnection},
      {"keep-alive", kKeepAlive},
      {"retry-after", kRetryAfter},
      {"content-type", kContentType},
      {"x-request-id", kRequestId},
      {"x-session-id", kSessionId},
      {"x-dynamo-session-id", kDynamoSessionId},
      {"x-claude-code-session-id", kClaudeCodeSessionId},
      {"x-claude-code-agent-id", kClaudeCodeAgentId},
      {"thread-id", kThreadId},
      {"authorization", kAuthorization},
      {"x-fathom-worker", kFathomWorker},
      {"x-fathom-dp-rank", kFathomDpRank},
      {"x-fathom-cached-tokens", kFathomCachedTokens},
      {"x-fathom-routing", kFathomRouting},
      {"x-fathom-forwarded", kFathomForwarded},
      {"X-data-parallel-rank", kDataParallelRank},
      {"proxy-connection", kProxyConnection},
      {"proxy-authenticate", kProxyAuthenticate},
      {"proxy-authorization", kProxyAuthorization},
  };
  for (const auto& [name, id] : kKnown) {
    std::string upper(name);
    for (char& c : upper) c = static_cast<char>(std::toupper(c));
    const std::string text = Request(fmt::format("{}: v\r\n{}: w\r\n", name, upper));
    const RequestHead head = Accepted(text);
    EXPECT_EQ(head.headers.all()[1].id, id) << name;
    EXPECT_EQ(head.headers.all()[2].id, id) << upper;
    EXPECT_EQ(head.headers.Find(id)->value, "v") << name;
  }
}

TEST(RequestHead, DoesNotMistakeOtherNamesOfTheSameLengthForKnownOnes) {
  for (const std::string_view name : {"tf", "hosT_", "x-request-ie", "content-lengti", "c0nnection",
                                      "transfer_encoding", "transfer-encodin~"}) {
    const std::string text = Request(fmt::format("{}: v\r\n", name));
    EXPECT_EQ(Accepted(text).headers.all()[1].id, HeaderName::kOther) << name;
  }
}

TEST(RequestHead, IsReadAfreshIntoAUsedObject) {
  RequestHead head;
  ASSERT_TRUE(ParseRequestHead(Request("Expect: 100-continue\r\nConnection: close\r\n"
                                       "Content-Length: 5\r\n"),
                               head));
  ASSERT_TRUE(ParseRequestHead("GET /b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", head));
  EXPECT_EQ(head.headers.all().size(), 1u);
  EXPECT_FALSE(head.headers.Has(HeaderName::kContentLength));
  EXPECT_EQ(head.framing, BodyFraming::kNone);
  EXPECT_EQ(head.content_length, 0u);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_FALSE(head.expect_continue);
}

TEST(RequestHead, FramesTheBodyByLengthChunksOrNotAtAll) {
  EXPECT_EQ(Accepted(Request("")).framing, BodyFraming::kNone);
  EXPECT_EQ(Accepted(Request("Transfer-Encoding: CHUNKED\r\n")).framing, BodyFraming::kChunked);
  const std::string text = Request("Content-Length: 9223372036854775807\r\n");
  const RequestHead head = Accepted(text);
  EXPECT_EQ(head.framing, BodyFraming::kLength);
  EXPECT_EQ(head.content_length, 9223372036854775807u);
}

TEST(RequestHead, KeepsTheConnectionAsVersionAndConnectionSay) {
  const auto keeps = [](int minor, std::string_view lines) {
    return Accepted(fmt::format("GET / HTTP/1.{}\r\nHost: a\r\n{}\r\n", minor, lines)).keep_alive;
  };
  EXPECT_TRUE(keeps(1, ""));
  EXPECT_FALSE(keeps(0, ""));
  EXPECT_FALSE(keeps(1, "Connection: close\r\n"));
  EXPECT_FALSE(keeps(1, "Connection: x, CLOSE ,y\r\n"));
  EXPECT_FALSE(keeps(1, "Connection: keep-alive\r\nConnection: close\r\n"));
  EXPECT_TRUE(keeps(1, "Connection: closed\r\n"));
  EXPECT_TRUE(keeps(0, "Connection: Keep-Alive\r\n"));
  EXPECT_FALSE(keeps(0, "Connection: keep-alive, close\r\n"));
}

TEST(RequestHead, AcceptsOriginStarAndAbsoluteTargets) {
  EXPECT_EQ(Accepted("GET http://h:1/p?q HTTP/1.1\r\nHost: h:1\r\n\r\n").target, "http://h:1/p?q");
  EXPECT_EQ(Accepted("GET HTTPS://[::1] HTTP/1.1\r\nHost: [::1]\r\n\r\n").target, "HTTPS://[::1]");
  EXPECT_EQ(Accepted("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").target, "*");
  EXPECT_THAT(RequestError("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), HasSubstr("OPTIONS"));
  EXPECT_THAT(RequestError("GET http:///p HTTP/1.1\r\nHost: a\r\n\r\n"), HasSubstr("host"));
  EXPECT_THAT(RequestError("GET a/b HTTP/1.1\r\nHost: a\r\n\r\n"), HasSubstr("target"));
}

TEST(RequestHead, ExpectsOnlyTheContinueThatHttp11Has) {
  EXPECT_TRUE(Accepted(Request("Expect: 100-Continue\r\n")).expect_continue);
  EXPECT_FALSE(Accepted("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").expect_continue);
  EXPECT_EQ(RequestError(Request("Expect: 200-ok\r\n")), "unsupported expectation");
  EXPECT_EQ(RequestError(Request("Expect: 100-continue\r\nExpect: x\r\n")),
            "unsupported expectation");
}

TEST(RequestHead, NeedsNoHostInHttp10) {
  EXPECT_EQ(RequestError("GET / HTTP/1.0\r\n\r\n"), "accepted");
  EXPECT_EQ(RequestError("GET / HTTP/1.1\r\n\r\n"), "Host is missing");
  EXPECT_EQ(RequestError("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"), "Host is repeated");
}

TEST(RequestHead, HasRoomForAsManyHeadersAsTheListHolds) {
  std::string lines;
  for (size_t i = 1; i < HeaderList::kMax; ++i) lines += "a: b\r\n";
  EXPECT_EQ(Accepted(Request(lines)).headers.all().size(), HeaderList::kMax);
  EXPECT_EQ(RequestError(Request(lines + "a: b\r\n")), "too many headers");
}

TEST(RequestHead, SaysWhatIsWrong) {
  EXPECT_EQ(RequestError(Request("A : b\r\n")), "white space before the colon");
  EXPECT_EQ(RequestError(Request("A: b\r\n c\r\n")), "folded header line");
  EXPECT_EQ(RequestError(Request("A: b\x01\r\n")), "control byte in a header value");
  EXPECT_EQ(RequestError(Request("A: b\rc\r\n")), "bare CR in the head");
  EXPECT_EQ(RequestError(Request(": b\r\n")), "empty header name");
  EXPECT_EQ(RequestError(Request("Content-Length: 1\r\nContent-Length: 1\r\n")),
            "Content-Length is repeated");
  EXPECT_EQ(RequestError(Request("Content-Length: 9223372036854775808\r\n")),
            "Content-Length is not a decimal number");
}

TEST(RequestHead, MustBeExactlyOneHead) {
  for (size_t length = 0; length < kTypical.size(); ++length) {
    EXPECT_NE(RequestError(kTypical.substr(0, length)), "accepted") << length;
  }
  EXPECT_NE(RequestError(std::string(kTypical) + "\r\n"), "accepted");
  EXPECT_NE(RequestError(std::string(kTypical) + std::string(kTypical)), "accepted");
  EXPECT_NE(RequestError("\r\n"), "accepted");
  EXPECT_NE(RequestError("\r\n\r\n"), "accepted");
}

TEST(RequestHead, AllowsEveryByteInAValueButControlBytes) {
  for (int byte = 0; byte < 256; ++byte) {
    // In the sixteen-byte stride and in the odd bytes after it.
    for (const size_t at : {3, 17, 40}) {
      std::string value(41, 'v');
      value[at] = static_cast<char>(byte);
      const bool allowed = byte == '\t' || (byte >= 0x20 && byte != 0x7f);
      EXPECT_EQ(RequestError(Request("A: " + value + "\r\n")) == "accepted", allowed)
          << byte << " at " << at;
    }
  }
}

TEST(HostileRequests, AreRefusedByTheirHeads) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/corpus/hostile_requests")) {
    if (!entry.path().filename().string().starts_with("head-")) continue;
    ++files;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    const Result<size_t> length = HeadFinder().Find(bytes);
    if (!length) continue;
    ASSERT_GT(*length, 0u) << entry.path() << ": a server would wait for more";
    EXPECT_NE(RequestError(std::string_view(bytes).substr(0, *length)), "accepted") << entry.path();
  }
  EXPECT_GT(files, 50u);
}

TEST(ResponseHead, HasWhatTheStatusLineSays) {
  const std::string text = Response("404 Not Found", "Content-Length: 2\r\n");
  const ResponseHead head = AcceptedResponse(text);
  EXPECT_EQ(head.status, 404);
  EXPECT_EQ(head.reason, "Not Found");
  EXPECT_EQ(head.framing, BodyFraming::kLength);
  EXPECT_EQ(head.content_length, 2u);
  EXPECT_TRUE(head.keep_alive);
}

TEST(ResponseHead, MayHaveNoReason) {
  EXPECT_EQ(AcceptedResponse(Response("200 ", "")).reason, "");
  EXPECT_EQ(AcceptedResponse(Response("200", "")).status, 200);
}

TEST(ResponseHead, RefusesOddStatusLines) {
  for (const std::string_view status : {"99", "099 x", "600 x", "20 x", "2000 x", "20x", "", "-20",
                                        "200\tx", "200 \x01", " 200 x"}) {
    EXPECT_NE(ResponseError(Response(status, "")), "accepted") << status;
  }
  EXPECT_NE(ResponseError("HTTP/2.0 200 OK\r\n\r\n"), "accepted");
  EXPECT_NE(ResponseError("HTTP/1.1  200 OK\r\n\r\n"), "accepted");
  EXPECT_NE(ResponseError("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "accepted");
}

TEST(ResponseHead, EndsWithTheConnectionWhenNothingElseFramesIt) {
  const ResponseHead head = AcceptedResponse(Response("200 OK", "Connection: keep-alive\r\n"));
  EXPECT_EQ(head.framing, BodyFraming::kUntilClose);
  EXPECT_FALSE(head.keep_alive);
}

TEST(ResponseHead, HasNoBodyForHeadAndForStatusesWithoutOne) {
  const std::string_view length = "Content-Length: 5\r\n";
  for (const std::string_view status : {"100 Continue", "101 x", "204 No Content", "304 x"}) {
    const ResponseHead head = AcceptedResponse(Response(status, length));
    EXPECT_EQ(head.framing, BodyFraming::kNone) << status;
    EXPECT_EQ(head.content_length, 0u) << status;
    EXPECT_TRUE(head.keep_alive) << status;
  }
  const ResponseHead head = AcceptedResponse(Response("200 OK", length), true);
  EXPECT_EQ(head.framing, BodyFraming::kNone);
  EXPECT_TRUE(head.keep_alive);
}

TEST(ResponseHead, RefusesAmbiguousFraming) {
  EXPECT_EQ(AcceptedResponse(Response("200 OK", "Transfer-Encoding: chunked\r\n")).framing,
            BodyFraming::kChunked);
  EXPECT_NE(
      ResponseError(Response("200 OK", "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n")),
      "accepted");
  EXPECT_NE(ResponseError(Response("200 OK", "Content-Length: 1\r\nContent-Length: 1\r\n")),
            "accepted");
  EXPECT_NE(ResponseError(Response("200 OK", "Transfer-Encoding: gzip\r\n")), "accepted");
  EXPECT_NE(ResponseError("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), "accepted");
}

TEST(HeadFinder, FindsTheEndHoweverTheHeadIsCut) {
  const std::string in = std::string(kTypical) + "{\n\n}";
  for (size_t cut = 0; cut < kTypical.size(); ++cut) {
    HeadFinder finder;
    ASSERT_EQ(finder.Find(std::string_view(in).substr(0, cut)).value(), 0u) << cut;
    ASSERT_EQ(finder.Find(in).value(), kTypical.size()) << cut;
    ASSERT_EQ(finder.Find("GET / HTTP/1.0\r\n\r\n").value(), 18u) << "ready for the next";
  }
}

TEST(HeadFinder, RefusesABareLfHoweverTheHeadIsCut) {
  const std::string_view in = "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n";
  const size_t lf = in.find("a\n") + 1;
  for (size_t cut = 0; cut <= in.size(); ++cut) {
    HeadFinder finder;
    const Result<size_t> first = finder.Find(in.substr(0, cut));
    EXPECT_EQ(first.has_value(), cut <= lf) << cut;
    if (!first) continue;
    EXPECT_FALSE(finder.Find(in)) << cut;
  }
  EXPECT_FALSE(HeadFinder().Find("\n"));
}

TEST(HeadFinder, LeavesALeadingBlankLineToTheCaller) {
  EXPECT_EQ(HeadFinder().Find("\r\nGET / HTTP/1.1\r\n\r\n").value(), 2u);
}

}  // namespace
}  // namespace fathom
