#include "io/http/server_connection.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "testing/loopback_server.h"
#include "testing/raw_socket.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Answers "METHOD TARGET|BODY". /unread does not read the body, /silent does not answer.
class EchoHandler final : public HttpHandler {
 public:
  Task<void> Handle(ServerConnection& connection) override {
    const RequestHead& head = connection.head();
    Answer answer{.content_type = "text/plain"};
    answer.body.append(head.method).append(" ").append(head.target).append("|");
    if (head.target == "/silent") co_return;
    if (head.target != "/unread") {
      auto reading = connection.ReadBody();
      const auto body = co_await reading;
      if (!body) {
        if (body.error().status == 0) co_return;
        answer = Refuse(body.error());
      } else {
        answer.body += *body;
      }
    }
    auto responding = connection.Respond(answer);
    co_await responding;
  }

  Answer Refuse(const RequestProblem& problem) override {
    return {.status = problem.status, .content_type = "text/plain", .body = problem.what};
  }
};

std::string BodyOf(const std::string& answer) {
  const size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "no answer: " + answer : answer.substr(end + 4);
}

class ServerConnectionTest : public testing::Test {
 protected:
  ServerConnectionTest() {
    options_.max_head = 4096;
    options_.max_body = 1 << 20;
  }

  void Start() { server_ = std::make_unique<LoopbackServer>(thread_, handler_, options_); }
  RawSocket Client() {
    if (!server_) Start();
    return RawSocket(server_->address());
  }

  // Sends the text on a new connection and returns everything received until it closes.
  std::string Exchange(std::string_view text) {
    RawSocket client = Client();
    EXPECT_TRUE(client.Send(text));
    std::string all = client.ReadToEnd();
    EXPECT_FALSE(client.reset());
    return all;
  }

  LoopThread thread_;
  EchoHandler handler_;
  ServerOptions options_;
  std::unique_ptr<LoopbackServer> server_;
};

TEST_F(ServerConnectionTest, AnswersRequestsOneAfterTheOtherOnOneConnection) {
  RawSocket client = Client();
  for (int i = 0; i < 5; ++i) {
    client.Send(fmt::format("POST /{} HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc", i));
    const std::string answer = client.ReadAnswer();
    EXPECT_EQ(BodyOf(answer), fmt::format("POST /{}|abc", i));
    EXPECT_THAT(answer, Not(HasSubstr("connection: close")));
  }
}

TEST_F(ServerConnectionTest, AnswersPipelinedRequestsInTheirOrder) {
  std::string all;
  for (int i = 0; i < 200; ++i) {
    const std::string body(static_cast<size_t>(i * 7 % 300), 'b');
    all += fmt::format("POST /{} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{}", i,
                       body.size(), body);
  }
  RawSocket client = Client();
  std::thread sender([&] { client.Send(all); });
  for (int i = 0; i < 200; ++i) {
    const std::string body(static_cast<size_t>(i * 7 % 300), 'b');
    ASSERT_EQ(BodyOf(client.ReadAnswer()), fmt::format("POST /{}|{}", i, body));
  }
  sender.join();
}

TEST_F(ServerConnectionTest, ReadsTheSameRequestsWhereverTheirBytesAreCut) {
  const std::string requests =
      "POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbody"
      "\r\nPOST /b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
      "GET /c HTTP/1.1\r\nhost: x\r\n\r\n";
  RawSocket client = Client();
  for (size_t cut = 1; cut < requests.size(); ++cut) {
    client.Send(requests.substr(0, cut));
    if (cut % 8 == 0) std::this_thread::sleep_for(milliseconds(1));  // else it may be one segment
    client.Send(requests.substr(cut));
    ASSERT_EQ(BodyOf(client.ReadAnswer()), "POST /a|body") << cut;
    ASSERT_EQ(BodyOf(client.ReadAnswer()), "POST /b|abcde") << cut;
    ASSERT_EQ(BodyOf(client.ReadAnswer()), "GET /c|") << cut;
  }
}

TEST_F(ServerConnectionTest, ReadsRequestsThatComeByteByByte) {
  RawSocket client = Client();
  for (const char c :
       std::string("\r\nPOST /b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"
                   "\r\n3\r\nabc\r\n0\r\n\r\n")) {
    client.Send(std::string(1, c));
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  EXPECT_EQ(BodyOf(client.ReadAnswer()), "POST /b|abc");
}

// The body is long enough to be read past the buffer that the head came in.
TEST_F(ServerConnectionTest, FindsTheRequestThatFollowsALongChunkedBodyInTheSameSegment) {
  std::string wire = "POST /long HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
  std::string body;
  for (int i = 0; i < 100; ++i) {
    const std::string piece(997, static_cast<char>('a' + i % 26));
    wire += "3e5\r\n" + piece + "\r\n";
    body += piece;
  }
  wire += "0\r\n\r\nGET /next HTTP/1.1\r\nhost: x\r\n\r\nGET /third HTTP/1.1\r\nhost: x\r\n\r\n";
  RawSocket client = Client();
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(client.Send(wire));
    ASSERT_TRUE(BodyOf(client.ReadAnswer()) == "POST /long|" + body);
    ASSERT_EQ(BodyOf(client.ReadAnswer()), "GET /next|");
    ASSERT_EQ(BodyOf(client.ReadAnswer()), "GET /third|");
  }
}

TEST_F(ServerConnectionTest, ReadsLongBodiesOfKnownLength) {
  options_.max_body = 32 << 20;
  for (const size_t size : {size_t{20'000}, size_t{5 << 20}, size_t{9 << 20}}) {
    std::string body(size, ' ');
    for (size_t i = 0; i < size; ++i) body[i] = static_cast<char>('a' + i % 19);
    RawSocket client = Client();
    client.Send(fmt::format("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", size));
    ASSERT_TRUE(client.Send(body));
    client.Send("GET /next HTTP/1.1\r\nhost: x\r\n\r\n");
    ASSERT_TRUE(BodyOf(client.ReadAnswer()) == "POST /|" + body) << size;
    ASSERT_EQ(BodyOf(client.ReadAnswer()), "GET /next|");
  }
}

TEST_F(ServerConnectionTest, ReadsAChunkedBodyThatGrowsBeyondWhatIsAllocated) {
  options_.max_body = 32 << 20;
  RawSocket client = Client();
  client.Send("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
  std::string body;
  for (int i = 0; i < 10; ++i) {
    const std::string piece(1 << 20, static_cast<char>('a' + i));
    ASSERT_TRUE(client.Send("100000\r\n" + piece + "\r\n"));
    body += piece;
  }
  client.Send("0\r\n\r\n");
  EXPECT_TRUE(BodyOf(client.ReadAnswer()) == "POST /|" + body);
}

TEST_F(ServerConnectionTest, TellsAClientThatExpectsItToContinue) {
  RawSocket client = Client();
  client.Send("POST /e HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("ok");
  EXPECT_EQ(BodyOf(client.ReadAnswer()), "POST /e|ok");
}

TEST_F(ServerConnectionTest, DoesNotTellAClientToContinueWhoDidNotWait) {
  RawSocket client = Client();
  client.Send("POST /e HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\nok");
  EXPECT_THAT(client.ReadAnswer(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(ServerConnectionTest, RefusesABodyThatIsAnnouncedTooLongWithoutReadingIt) {
  const std::string answer = Exchange(
      "POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 1048577\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 Content Too Large\r\n"));
  EXPECT_THAT(answer, HasSubstr("connection: close\r\n"));
}

TEST_F(ServerConnectionTest, LetsAClientReadTheRefusalWhileItIsStillSending) {
  RawSocket client = Client();
  client.Send("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
  const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  bool sent = true;
  for (int i = 0; i < 64 && sent; ++i) sent = client.Send(chunk);
  EXPECT_TRUE(sent) << "the connection was reset under a client that was sending";
  EXPECT_THAT(client.ReadAnswer(), StartsWith("HTTP/1.1 413 "));
}

TEST_F(ServerConnectionTest, LetsAClientReadWhyItsMalformedRequestWasRefusedWhileItIsSending) {
  RawSocket client = Client();
  client.Send("POST / HTTP/1.1\r\nhost: x\r\nbad header\r\ncontent-length: 4000000\r\n\r\n");
  const std::string part(100'000, 'x');
  bool sent = true;
  for (int i = 0; i < 40 && sent; ++i) {
    sent = client.Send(part);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  EXPECT_TRUE(sent);
  EXPECT_THAT(client.ReadAnswer(), StartsWith("HTTP/1.1 400 "));
}

TEST_F(ServerConnectionTest, RefusesAHeadThatIsTooLongWhetherItEndsOrNot) {
  const std::string filler = "x-filler: " + std::string(5000, 'f');
  EXPECT_THAT(Exchange("GET / HTTP/1.1\r\nhost: x\r\n" + filler + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Exchange("GET / HTTP/1.1\r\nhost: x\r\n" + filler), StartsWith("HTTP/1.1 431 "));
}

TEST_F(ServerConnectionTest, TakesAHeadOfExactlyTheLimit) {
  std::string head = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-f: ";
  head += std::string(options_.max_head - head.size() - 4, 'f') + "\r\n\r\n";
  ASSERT_EQ(head.size(), options_.max_head);
  EXPECT_THAT(Exchange(head), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServerConnectionTest, RefusesWhatIsNotHttp) {
  for (const char* text :
       {"\x16\x03\x01\x02\n", "GET /\r\n\r\n", "GET / HTTP/1.1\nhost: x\n\n",
        "GET / HTTP/2.0\r\nhost: x\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n"}) {
    const std::string answer = Exchange(text);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 Bad Request\r\n")) << text;
    EXPECT_THAT(answer, HasSubstr("connection: close\r\n")) << text;
  }
}

TEST_F(ServerConnectionTest, RefusesAChunkedBodyThatIsNone) {
  EXPECT_THAT(Exchange("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
              StartsWith("HTTP/1.1 400 "));
}

TEST_F(ServerConnectionTest, TellsAClientWhoseHeadOrBodyTakesTooLong) {
  options_.head_timeout = milliseconds(30);
  options_.body_timeout = milliseconds(30);
  EXPECT_THAT(Exchange("GET / HTTP/1.1\r\nhos"), StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(Exchange("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab"),
              StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(Exchange("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab"),
              StartsWith("HTTP/1.1 408 "));
}

TEST_F(ServerConnectionTest, ClosesWithoutAWordAConnectionThatStaysIdle) {
  options_.head_timeout = milliseconds(20);
  options_.keep_alive_timeout = milliseconds(40);
  EXPECT_EQ(Exchange(""), "");
  RawSocket client = Client();
  client.Send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  client.ReadAnswer();
  EXPECT_EQ(client.ReadToEnd(), "");
  EXPECT_FALSE(client.reset());
}

TEST_F(ServerConnectionTest, ClosesAfterTheAnswerWhenTheClientWantsItOrSpeaksHttp10) {
  const std::string modern = Exchange("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  EXPECT_THAT(modern, HasSubstr("connection: close\r\n"));
  EXPECT_THAT(modern, EndsWith("GET /|"));
  const std::string old = Exchange("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old, HasSubstr("connection: close\r\n"));
  EXPECT_THAT(old, EndsWith("GET /|"));
}

// Without a keep-alive header, an HTTP/1.0 client would wait for the end of the connection.
TEST_F(ServerConnectionTest, TellsAnHttp10ClientThatAskedForItThatTheConnectionStays) {
  RawSocket client = Client();
  for (int i = 0; i < 2; ++i) {
    client.Send("GET /old HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
    const std::string answer = client.ReadAnswer();
    EXPECT_THAT(answer, HasSubstr("\r\nconnection: keep-alive\r\n"));
    EXPECT_EQ(BodyOf(answer), "GET /old|");
  }
}

TEST_F(ServerConnectionTest, LeavesTheBodyOutWhenAskedForTheHeadOnly) {
  RawSocket client = Client();
  client.Send("HEAD /h HTTP/1.1\r\nhost: x\r\n\r\nGET /g HTTP/1.1\r\nhost: x\r\n\r\n");
  const std::string head = client.ReadUntil("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("content-length: 8\r\n"));
  EXPECT_EQ(BodyOf(client.ReadAnswer()), "GET /g|");
}

TEST_F(ServerConnectionTest, ClosesAfterAnAnswerToARequestWhoseBodyNobodyRead) {
  RawSocket client = Client();
  client.Send("POST /unread HTTP/1.1\r\nhost: x\r\ncontent-length: 30\r\n\r\n");
  const std::string answer = client.ReadAnswer();
  EXPECT_THAT(answer, HasSubstr("connection: close\r\n"));
  client.Send("GET /smuggled HTTP/1.1\r\nhost:");
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(ServerConnectionTest, KeepsTheConnectionWhenTheUnreadBodyIsEmpty) {
  RawSocket client = Client();
  client.Send("GET /unread HTTP/1.1\r\nhost: x\r\n\r\nGET /next HTTP/1.1\r\nhost: x\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReadAnswer()), "GET /unread|");
  EXPECT_EQ(BodyOf(client.ReadAnswer()), "GET /next|");
}

TEST_F(ServerConnectionTest, ClosesWhenTheHandlerDoesNotAnswer) {
  EXPECT_EQ(Exchange("GET /silent HTTP/1.1\r\nhost: x\r\n\r\n"), "");
}

TEST_F(ServerConnectionTest, SurvivesClientsThatLeaveAnywhere) {
  const std::string request =
      "POST /b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  for (size_t cut = 0; cut <= request.size(); ++cut) {
    RawSocket client = Client();
    client.Send(request.substr(0, cut));
    if (cut % 2 == 0) client.Reset();
  }
  EXPECT_THAT(Exchange("GET / HTTP/1.0\r\n\r\n"), EndsWith("GET /|"));
}

TEST_F(ServerConnectionTest, ClosesIdleConnectionsWhenItDrainsAndOthersAfterTheirAnswer) {
  RawSocket idle = Client();
  idle.Send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  idle.ReadAnswer();
  RawSocket busy = Client();
  busy.Send("POST /b HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\na");
  while (server_->server().connections() < 2) std::this_thread::sleep_for(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(5));
  server_->server().Drain();
  EXPECT_EQ(idle.ReadToEnd(), "");
  busy.Send("b");
  EXPECT_THAT(busy.ReadToEnd(), EndsWith("POST /b|ab"));
  const std::string late = Exchange("GET /late HTTP/1.1\r\nhost: x\r\n\r\n");
  EXPECT_THAT(late, HasSubstr("connection: close\r\n"));
}

TEST_F(ServerConnectionTest, RefusesMoreConnectionsThanItMayHave) {
  server_ = std::make_unique<LoopbackServer>(thread_, handler_, options_, 1);
  RawSocket first = Client();
  first.Send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  first.ReadAnswer();
  RawSocket second = Client();
  EXPECT_EQ(second.ReadToEnd(), "");
  EXPECT_EQ(server_->server().refused(), 1u);
  first.Close();
}

}  // namespace
}  // namespace fathom
