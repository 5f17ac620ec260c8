#include "io/net/tls.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "io/net/socket.h"
#include "testing/loop_thread.h"
#include "testing/loopback_pair.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Certificates that the openssl command creates in a temporary folder: a self-signed one for
// localhost and 127.0.0.1, and an unrelated one.
class Certificates {
 public:
  Certificates() {
    char name[] = "/tmp/fathom_tls_test.XXXXXX";
    folder_ = ::mkdtemp(name);
    Make("ours", "-addext subjectAltName=DNS:localhost,IP:127.0.0.1");
    Make("other", "-addext subjectAltName=DNS:elsewhere");
  }
  ~Certificates() { std::filesystem::remove_all(folder_); }

  std::string Certificate(const std::string& name) const { return folder_ + "/" + name + ".pem"; }
  std::string Key(const std::string& name) const { return folder_ + "/" + name + ".key"; }

 private:
  void Make(const std::string& name, const std::string& more) {
    const std::string command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=" +
        name + " -keyout " + Key(name) + " -out " + Certificate(name) + " " + more +
        " >/dev/null 2>&1";
    CHECK(std::system(command.c_str()) == 0);
  }

  std::string folder_;
};

std::string TextOf(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

const Certificates& Shared() {
  static const Certificates certificates;
  return certificates;
}

class TlsTest : public testing::Test {
 public:
  TlsTest() {
    ::signal(SIGPIPE, SIG_IGN);  // as the program does
    const LoopbackPair pair = ConnectedPair();
    client_ = std::make_unique<Socket>(loop_, pair.near);
    server_ = std::make_unique<Socket>(loop_, pair.far);
  }

  TimePoint Soon() { return loop_.now() + seconds(20); }

  void StartTls(const std::string& ca, const std::string& name) {
    const auto serving = TlsServerContext::Load(Shared().Certificate("ours"), Shared().Key("ours"));
    const auto calling = TlsClientContext::Create(Shared().Certificate(ca));
    ASSERT_TRUE(serving) << serving.error().what;
    ASSERT_TRUE(calling) << calling.error().what;
    server_->StartTls(**serving);
    client_->StartTls(**calling, name);
  }

  Task<void> Shake(Socket& socket, IoResult& result) { result = co_await socket.Handshake(Soon()); }

  Task<void> ShakeBoth(IoResult& client, IoResult& server) {
    auto one = Shake(*client_, client);
    auto other = Shake(*server_, server);
    co_await one;
    co_await other;
  }

  Task<void> Send(Socket& socket, const std::string& text, IoResult& result) {
    result = co_await socket.Write(text, Soon());
  }

  Task<void> Receive(Socket& socket, size_t bytes, std::string& text, IoStatus& status) {
    std::vector<char> room(50'000);
    status = IoStatus::kOk;
    while (text.size() < bytes) {
      const IoResult read = co_await socket.Read(room, Soon());
      status = read.status;
      if (!read.ok()) co_return;
      text.append(room.data(), read.bytes);
    }
  }

  Loop loop_;
  std::unique_ptr<Socket> client_;
  std::unique_ptr<Socket> server_;
};

TEST_F(TlsTest, CarriesAMegabyteBothWaysAtTheSameTime) {
  StartTls("ours", "localhost");
  std::string up(1 << 20, ' ');
  for (size_t i = 0; i < up.size(); ++i) up[i] = static_cast<char>(i * 31 % 251);
  const std::string down(up.rbegin(), up.rend());
  std::string got_up;
  std::string got_down;
  struct Script {
    static Task<void> Run(TlsTest& t, const std::string& up, const std::string& down,
                          std::string& got_up, std::string& got_down) {
      IoResult client;
      IoResult server;
      auto shaking_1 = t.ShakeBoth(client, server);
      co_await shaking_1;
      EXPECT_TRUE(client.ok()) << t.client_->TlsProblem();
      EXPECT_TRUE(server.ok()) << t.server_->TlsProblem();
      IoStatus status[2];
      auto rising = t.Send(*t.client_, up, client);
      auto falling = t.Send(*t.server_, down, server);
      auto at_server = t.Receive(*t.server_, up.size(), got_up, status[0]);
      auto at_client = t.Receive(*t.client_, down.size(), got_down, status[1]);
      co_await rising;
      co_await falling;
      co_await at_server;
      co_await at_client;
      EXPECT_TRUE(client.ok() && server.ok());
      EXPECT_EQ(client.bytes, up.size());
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, up, down, got_up, got_down); });
  EXPECT_TRUE(got_up == up);
  EXPECT_TRUE(got_down == down);
}

TEST_F(TlsTest, JoinsSmallPartsAndSplitsLargeOnes) {
  StartTls("ours", "127.0.0.1");
  std::string got;
  std::string expected;
  struct Script {
    static Task<void> Run(TlsTest& t, std::string& got, std::string& expected) {
      IoResult client;
      IoResult server;
      auto shaking_2 = t.ShakeBoth(client, server);
      co_await shaking_2;
      std::vector<std::string> texts = {"a", "", "bc", std::string(40'000, 'd'), "e"};
      std::vector<iovec> parts;
      for (std::string& text : texts) {
        expected += text;
        parts.push_back({text.data(), text.size()});
      }
      const IoResult sent = co_await t.client_->Write(parts, t.Soon());
      EXPECT_TRUE(sent.ok());
      EXPECT_EQ(sent.bytes, expected.size());
      IoStatus status;
      auto receiving_3 = t.Receive(*t.server_, expected.size(), got, status);
      co_await receiving_3;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, got, expected); });
  EXPECT_TRUE(got == expected);
}

class RefusedTls : public TlsTest {
 public:
  void ExpectRefused(const std::string& ca, const std::string& name, const std::string& problem) {
    StartTls(ca, name);
    IoResult client;
    IoResult server;
    struct Script {
      static Task<void> Run(RefusedTls& t, IoResult& client, IoResult& server) {
        auto other = t.Shake(*t.server_, server);
        auto shaking_4 = t.Shake(*t.client_, client);
        co_await shaking_4;
        t.client_->FinishSending();
        co_await other;
      }
    };
    RunToEnd(loop_, [&] { return Script::Run(*this, client, server); });
    EXPECT_EQ(client.status, IoStatus::kError);
    EXPECT_NE(client_->TlsProblem().find(problem), std::string::npos) << client_->TlsProblem();
  }
};

TEST_F(RefusedTls, WhenTheServersCertificateIsNotSignedByTheGivenAuthority) {
  ExpectRefused("other", "localhost", "self-signed");
}

TEST_F(RefusedTls, WhenTheNameIsAnother) { ExpectRefused("ours", "elsewhere", "mismatch"); }

TEST_F(RefusedTls, WhenTheAddressIsAnother) { ExpectRefused("ours", "127.0.0.2", "mismatch"); }

enum class Farewell { kPolite, kCut, kReset };

class TlsEndTest : public TlsTest, public testing::WithParamInterface<Farewell> {};

// TLS must distinguish a stream that ended from one that was truncated.
TEST_P(TlsEndTest, IsToldApartFromACut) {
  StartTls("ours", "localhost");
  std::string got;
  IoStatus status{};
  struct Script {
    static Task<void> Run(TlsTest& t, Farewell farewell, std::string& got, IoStatus& status) {
      IoResult client;
      IoResult server;
      auto shaking_5 = t.ShakeBoth(client, server);
      co_await shaking_5;
      auto sending_6 = t.Send(*t.server_, "half of it", server);
      co_await sending_6;
      IoStatus before;
      auto receiving_7 = t.Receive(*t.client_, 10, got, before);
      co_await receiving_7;
      EXPECT_EQ(before, IoStatus::kOk);
      if (farewell == Farewell::kReset) t.server_->ResetOnClose();
      t.server_.reset();
      auto receiving_8 = t.Receive(*t.client_, 11, got, status);
      co_await receiving_8;
    }
    // The far end sends no close_notify, as if its process had died.
    static Task<void> Cut(TlsTest& t, int far, std::string& got, IoStatus& status) {
      IoResult client;
      auto shaking = t.Shake(*t.client_, client);
      co_await t.loop_.Sleep(milliseconds(2));
      ::shutdown(far, SHUT_WR);
      co_await shaking;
      status = client.status;
      got = "half of it";
    }
  };
  if (GetParam() == Farewell::kCut) {
    const LoopbackPair pair = ConnectedPair();
    client_ = std::make_unique<Socket>(loop_, pair.near);
    const auto calling = TlsClientContext::Create(Shared().Certificate("ours"));
    client_->StartTls(**calling, "localhost");
    RunToEnd(loop_, [&] { return Script::Cut(*this, pair.far, got, status); });
    ::close(pair.far);
  } else {
    RunToEnd(loop_, [&] { return Script::Run(*this, GetParam(), got, status); });
  }
  EXPECT_EQ(got, "half of it");
  EXPECT_EQ(status, GetParam() == Farewell::kPolite ? IoStatus::kEof : IoStatus::kError);
}

INSTANTIATE_TEST_SUITE_P(EveryEnd, TlsEndTest,
                         testing::Values(Farewell::kPolite, Farewell::kCut, Farewell::kReset));

TEST_F(TlsTest, IsQuietAfterAWholeAnswerSoThatTheConnectionCanBeUsedAgain) {
  StartTls("ours", "localhost");
  struct Script {
    static Task<void> Run(TlsTest& t) {
      IoResult client;
      IoResult server;
      auto shaking_9 = t.ShakeBoth(client, server);
      co_await shaking_9;
      for (int i = 0; i < 3; ++i) {
        std::string got;
        IoStatus status;
        auto sending_10 = t.Send(*t.server_, "an answer", server);
        co_await sending_10;
        auto receiving_11 = t.Receive(*t.client_, 9, got, status);
        co_await receiving_11;
        EXPECT_TRUE(t.client_->quiet()) << i;
        co_await t.loop_.Sleep(milliseconds(2));
        EXPECT_TRUE(t.client_->quiet()) << i;
      }
      auto sending_12 = t.Send(*t.server_, "unasked", server);
      co_await sending_12;
      co_await t.loop_.Sleep(milliseconds(10));
      EXPECT_FALSE(t.client_->quiet());
      char part[2];
      const IoResult read = co_await t.client_->Read(part, t.Soon());
      EXPECT_EQ(read.bytes, 2u);
      EXPECT_FALSE(t.client_->quiet()) << "the rest of the record has been read already";
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
}

// A server whose session tickets are longer than a record, and which sends the first record alone:
// the client is then in the middle of a message about keys.
class HalfATicket {
 public:
  explicit HalfATicket(int fd) : fd_(fd), context_(SSL_CTX_new(TLS_server_method()), SSL_CTX_free) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    const std::string certificate = Shared().Certificate("ours");
    CHECK(SSL_CTX_use_certificate_file(context_.get(), certificate.c_str(), SSL_FILETYPE_PEM) == 1);
    const std::string key = Shared().Key("ours");
    CHECK(SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM) == 1);
    SSL_CTX_set_max_send_fragment(context_.get(), 512);
    const auto fill = [](SSL* tls, void*) {
      const std::string much(2000, 'x');
      return SSL_SESSION_set1_ticket_appdata(SSL_get_session(tls), much.data(), much.size());
    };
    SSL_CTX_set_session_ticket_cb(context_.get(), fill, nullptr, nullptr);
    tls_.reset(SSL_new(context_.get()));
  }
  ~HalfATicket() { ::close(fd_); }

  void Shake() {
    SSL_set_bio(tls_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    char bytes[8192];
    while (SSL_accept(tls_.get()) != 1) {
      Send(TakeBytes());
      const ssize_t n = ::recv(fd_, bytes, sizeof(bytes), 0);
      CHECK(n > 0);
      BIO_write(SSL_get_rbio(tls_.get()), bytes, static_cast<int>(n));
    }
    const std::string tickets = TakeBytes();
    const size_t body = static_cast<uint8_t>(tickets[3]) * 256u + static_cast<uint8_t>(tickets[4]);
    CHECK(5 + body < tickets.size());
    Send(tickets.substr(0, 5 + body));
    sent_ = true;
  }
  bool sent() const { return sent_; }

 private:
  std::string TakeBytes() {
    std::string bytes(1 << 16, ' ');
    const int n = BIO_read(SSL_get_wbio(tls_.get()), bytes.data(), static_cast<int>(bytes.size()));
    bytes.resize(static_cast<size_t>(std::max(n, 0)));
    return bytes;
  }
  void Send(const std::string& bytes) {
    CHECK(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
  }

  const int fd_;
  std::atomic<bool> sent_ = false;
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, SSL_free};
};

TEST_F(TlsTest, AWriteThatNeedsInputWhereAReadWaitsBreaksTheConnectionAlone) {
  const LoopbackPair pair = ConnectedPair();
  client_ = std::make_unique<Socket>(loop_, pair.near);
  const auto calling = TlsClientContext::Create(Shared().Certificate("ours"));
  client_->StartTls(**calling, "localhost");
  HalfATicket server(pair.far);
  std::jthread serving([&] { server.Shake(); });
  struct Script {
    static Task<void> Run(TlsTest& t, const HalfATicket& server) {
      IoResult result;
      auto shaking = t.Shake(*t.client_, result);
      co_await shaking;
      EXPECT_TRUE(result.ok()) << t.client_->TlsProblem();
      std::string got;
      IoStatus status = IoStatus::kOk;
      auto receiving = t.Receive(*t.client_, 1, got, status);
      while (!server.sent()) co_await t.loop_.Sleep(milliseconds(1));
      co_await t.loop_.Sleep(milliseconds(50));
      auto sending = t.Send(*t.client_, "ping", result);
      co_await sending;
      EXPECT_EQ(result.status, IoStatus::kError);
      t.client_->Cancel();
      co_await receiving;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, server); });
}

TEST_F(TlsTest, TimesOutAHandshakeWithSomebodyWhoSaysNothing) {
  const auto calling = TlsClientContext::Create(Shared().Certificate("ours"));
  client_->StartTls(**calling, "localhost");
  IoResult result;
  struct Script {
    static Task<void> Run(TlsTest& t, IoResult& result) {
      result = co_await t.client_->Handshake(t.loop_.now() + milliseconds(20));
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, result); });
  EXPECT_EQ(result.status, IoStatus::kTimeout);
}

TEST_F(TlsTest, RefusesAPeerThatDoesNotSpeakTls) {
  const auto serving = TlsServerContext::Load(Shared().Certificate("ours"), Shared().Key("ours"));
  server_->StartTls(**serving);
  IoResult result;
  struct Script {
    static Task<void> Run(TlsTest& t, IoResult& result) {
      const std::string plain = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
      IoResult sent;
      auto sending_13 = t.Send(*t.client_, plain, sent);
      co_await sending_13;
      auto shaking_14 = t.Shake(*t.server_, result);
      co_await shaking_14;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, result); });
  EXPECT_EQ(result.status, IoStatus::kError);
  EXPECT_NE(server_->TlsProblem(), "");
}

TEST(TlsContext, NamesTheFileThatIsMissingOrWrong) {
  const Certificates& c = Shared();
  const auto no_file = TlsServerContext::Load("/nowhere.pem", c.Key("ours"));
  ASSERT_FALSE(no_file);
  EXPECT_NE(no_file.error().what.find("/nowhere.pem"), std::string::npos);
  const auto no_key = TlsServerContext::Load(c.Certificate("ours"), "/nowhere.key");
  ASSERT_FALSE(no_key);
  EXPECT_NE(no_key.error().what.find("/nowhere.key"), std::string::npos);
  const auto mixed = TlsServerContext::Load(c.Certificate("ours"), c.Key("other"));
  ASSERT_FALSE(mixed);
  const auto no_ca = TlsClientContext::Create("/nowhere.ca");
  ASSERT_FALSE(no_ca);
  EXPECT_NE(no_ca.error().what.find("/nowhere.ca"), std::string::npos);
  EXPECT_EQ(no_ca.error().blame, Blame::kCaller);
}

TEST_F(TlsTest, TrustsAuthoritiesAndShowsACertificateThatCameAsText) {
  const auto serving = TlsServerContext::Load(Shared().Certificate("ours"), Shared().Key("ours"));
  const std::string both =
      TextOf(Shared().Certificate("other")) + "a remark\n" + TextOf(Shared().Certificate("ours"));
  const auto calling = TlsClientContext::FromPem(
      {.authorities = both, .certificate = both, .key = TextOf(Shared().Key("other"))});
  ASSERT_TRUE(calling) << calling.error().what;
  server_->StartTls(**serving);
  client_->StartTls(**calling, "localhost");
  IoResult client;
  IoResult server;
  RunToEnd(loop_, [&] { return ShakeBoth(client, server); });
  EXPECT_TRUE(client.ok()) << client_->TlsProblem();
  EXPECT_TRUE(server.ok()) << server_->TlsProblem();
}

TEST_F(TlsTest, DoesNotTrustWhomTheTextDoesNotName) {
  const auto serving = TlsServerContext::Load(Shared().Certificate("ours"), Shared().Key("ours"));
  const auto calling =
      TlsClientContext::FromPem({.authorities = TextOf(Shared().Certificate("other"))});
  ASSERT_TRUE(calling) << calling.error().what;
  server_->StartTls(**serving);
  client_->StartTls(**calling, "localhost");
  IoResult result;
  struct Script {
    static Task<void> Run(TlsTest& t, IoResult& result) {
      IoResult server;
      auto other = t.Shake(*t.server_, server);
      auto shaking = t.Shake(*t.client_, result);
      co_await shaking;
      t.client_->FinishSending();
      co_await other;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, result); });
  EXPECT_EQ(result.status, IoStatus::kError);
}

TEST(TlsContext, RefusesTextThatCannotBeUsedWithoutQuotingIt) {
  const std::string certificate = TextOf(Shared().Certificate("ours"));
  const std::string key = TextOf(Shared().Key("ours"));
  const TlsClientPem wrong[] = {
      {.authorities = "s3cret"},
      {.certificate = "s3cret", .key = key},
      {.certificate = certificate, .key = "s3cret"},
      {.certificate = certificate, .key = TextOf(Shared().Key("other"))},
      {.certificate = certificate},
  };
  for (const TlsClientPem& pem : wrong) {
    const auto context = TlsClientContext::FromPem(pem);
    ASSERT_FALSE(context);
    EXPECT_EQ(context.error().blame, Blame::kCaller);
    EXPECT_EQ(context.error().what.find("s3cret"), std::string::npos);
  }
}

}  // namespace
}  // namespace fathom
