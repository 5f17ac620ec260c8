#include "io/http/fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "testing/loop_thread.h"
#include "testing/loopback_pair.h"
#include "testing/raw_socket.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Result<FetchAnswer> FetchFrom(const std::string& url, const FetchRequest& request,
                              Duration patience = seconds(10)) {
  Loop loop;
  Resolver resolver;
  const Endpoint endpoint{*Url::Parse(url), nullptr};
  return RunToEnd(loop,
                  [&] { return Fetch(loop, resolver, endpoint, request, loop.now() + patience); });
}

// The result of a fetch when the server sends `answer`, piece by piece, and closes.
Result<FetchAnswer> FetchAnswered(std::vector<std::string> answer, FetchRequest request = {}) {
  ScriptedServer server([&](RawSocket& socket) {
    socket.ReadUntil("\r\n\r\n");
    for (const std::string& piece : answer) {
      socket.Send(piece);
      if (answer.size() > 1) std::this_thread::sleep_for(milliseconds(2));
    }
  });
  request.path = "/p";
  return FetchFrom(server.url(), request);
}

TEST(Fetch, SendsARequestThatIsWhole) {
  std::string seen;
  ScriptedServer server([&](RawSocket& socket) {
    seen = socket.ReadUntil("{}");
    socket.Send("HTTP/1.1 204 No Content\r\n\r\n");
  });
  FetchRequest request{.method = "POST", .path = "/v1/x", .headers = {{"a", "b"}}, .body = "{}"};
  const auto answer = FetchFrom(server.url() + "/base", request);
  server.Stop();
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(answer->status, 204);
  EXPECT_THAT(seen, StartsWith("POST /base/v1/x HTTP/1.1\r\nhost: 127.0.0.1:"));
  EXPECT_THAT(seen, HasSubstr("\r\na: b\r\n"));
  EXPECT_THAT(seen, HasSubstr("\r\nconnection: close\r\n"));
  EXPECT_THAT(seen, HasSubstr("\r\ncontent-length: 2\r\n"));
}

TEST(Fetch, ReadsHeadsLongerThanItsBufferUpToTheLimit) {
  const auto answer = [](size_t bytes) {
    return "HTTP/1.1 200 OK\r\nx-long: " + std::string(bytes, 'y') +
           "\r\ncontent-length: 2\r\n\r\nok";
  };
  const auto long_head = FetchAnswered({answer(60'000)});
  ASSERT_TRUE(long_head) << long_head.error().what;
  EXPECT_EQ(long_head->body, "ok");
  const auto too_long = FetchAnswered({answer(ClientConnection::kUsualMaxHead)});
  ASSERT_FALSE(too_long);
  EXPECT_THAT(too_long.error().what, HasSubstr("longer than 65536 bytes"));
}

TEST(Fetch, ReadsBodiesOfEveryFraming) {
  for (const char* wire :
       {"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\nhello",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: "
        "x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"}) {
    const auto answer = FetchAnswered({wire});
    ASSERT_TRUE(answer) << wire << ": " << answer.error().what;
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, "hello") << wire;
  }
}

TEST(Fetch, ReadsAnAnswerThatComesInPieces) {
  const auto answer = FetchAnswered({"HTTP/1.1 20", "0 OK\r\ntransfer-enc", "oding: chunked\r\n\r",
                                     "\n2\r", "\nhe\r\n3\r\nl", "lo\r\n0\r\n", "\r\n"});
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(answer->body, "hello");
}

TEST(Fetch, ExpectsNoBodyAfterHead) {
  FetchRequest request{.method = "HEAD"};
  const auto answer = FetchAnswered({"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n"}, request);
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(answer->body, "");
}

TEST(Fetch, TakesABodyThatIsCutOffForAnError) {
  for (const char* wire :
       {"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"}) {
    const auto answer = FetchAnswered({wire});
    ASSERT_FALSE(answer) << wire;
    EXPECT_EQ(answer.error().blame, Blame::kPeer);
  }
}

TEST(Fetch, RefusesWhatIsNotHttpAndHeadsWithoutEnd) {
  EXPECT_FALSE(FetchAnswered({"SSH-2.0-OpenSSH_9.2\r\n\r\n"}));
  EXPECT_FALSE(FetchAnswered({"HTTP/1.1 200 OK\r\nx: " + std::string(100'000, 'y')}));
}

TEST(Fetch, RefusesAnAnswerLongerThanAskedFor) {
  FetchRequest request;
  request.max_answer = 1000;
  const auto short_enough =
      FetchAnswered({"HTTP/1.0 200 OK\r\n\r\n" + std::string(1000, 'x')}, request);
  EXPECT_TRUE(short_enough);
  const auto too_long =
      FetchAnswered({"HTTP/1.0 200 OK\r\n\r\n" + std::string(1001, 'x')}, request);
  ASSERT_FALSE(too_long);
  EXPECT_THAT(too_long.error().what, HasSubstr("longer than 1000"));
}

TEST(Fetch, SaysThatAConnectionWasRefused) {
  const auto answer = FetchFrom("http://" + ClosedPort().ToString(), {});
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().what, HasSubstr("connection refused"));
}

TEST(Fetch, GivesUpOnASilentServer) {
  ScriptedServer server([](RawSocket& socket) { socket.ReadToEnd(); });
  const auto answer = FetchFrom(server.url(), {}, milliseconds(30));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().what, HasSubstr("timed out"));
}

TEST(Caller, KeepsItsConnectionAndTellsWhenTheServerEndsIt) {
  int connections = 0;
  ScriptedServer server([&](RawSocket& socket) {
    const std::string number = std::to_string(++connections);
    for (int request = 0; request < 2; ++request) {
      socket.ReadUntil("\r\n\r\n");
      socket.Send("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n" + number);
    }
  });
  Loop loop;
  Resolver resolver;
  int lost = 0;
  Caller caller(loop, resolver,
                std::make_shared<const Endpoint>(Endpoint{*Url::Parse(server.url()), nullptr}),
                [&] { ++lost; });
  struct Script {
    static Task<void> Run(Loop& loop, Caller& caller, std::string& seen, const int& lost) {
      const FetchRequest request{.path = "/p"};
      for (int i = 0; i < 4; ++i) {
        auto asking = caller.Fetch(request, loop.now() + seconds(10));
        const auto answer = co_await asking;
        seen += answer ? answer->body : "?";
        if (i % 2 == 0) {
          EXPECT_EQ(lost, i / 2) << "it is kept";
        }
        while (i % 2 == 1 && lost <= i / 2) co_await loop.Sleep(milliseconds(1));
      }
    }
  };
  std::string seen;
  RunToEnd(loop, [&] { return Script::Run(loop, caller, seen, lost); });
  EXPECT_EQ(seen, "1122");
  EXPECT_EQ(lost, 2);
}

TEST(Caller, OpensANewConnectionAfterATime) {
  int connections = 0;
  ScriptedServer server([&](RawSocket& socket) {
    const std::string number = std::to_string(++connections);
    while (socket.ReadUntil("\r\n\r\n").ends_with("\r\n\r\n")) {
      socket.Send("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n" + number);
    }
  });
  Loop loop;
  Resolver resolver;
  int lost = 0;
  Caller caller(
      loop, resolver,
      std::make_shared<const Endpoint>(Endpoint{*Url::Parse(server.url()), nullptr}),
      [&] { ++lost; }, milliseconds(300));
  struct Script {
    static Task<void> Run(Loop& loop, Caller& caller, std::string& seen) {
      const FetchRequest request{.path = "/p"};
      const TimePoint begun = loop.now();
      while (!seen.ends_with('2') && loop.now() - begun < seconds(20)) {
        auto asking = caller.Fetch(request, loop.now() + seconds(10));
        const auto answer = co_await asking;
        seen += answer ? answer->body : "?";
        co_await loop.Sleep(milliseconds(10));
      }
    }
  };
  std::string seen;
  RunToEnd(loop, [&] { return Script::Run(loop, caller, seen); });
  EXPECT_EQ(seen.find_first_not_of('1'), seen.size() - 1) << seen;
  EXPECT_EQ(lost, 0) << "the server has not closed it";
}

}  // namespace
}  // namespace fathom
