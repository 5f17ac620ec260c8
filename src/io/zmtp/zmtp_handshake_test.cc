#include "io/zmtp/zmtp_handshake.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

using Shaken = ZmtpHandshake::Step;

std::string Property(std::string_view name, std::string_view value) {
  std::string bytes(1, static_cast<char>(name.size()));
  bytes += name;
  bytes += std::string(3, '\0') + static_cast<char>(value.size());
  bytes += value;
  return bytes;
}

std::string Ready(std::string_view type) {
  std::string bytes;
  AppendZmtpCommand("READY", Property("Identity", "") + Property("socket-TYPE", type), bytes);
  return bytes;
}

std::string Hello(std::string_view user, std::string_view password) {
  std::string data(1, static_cast<char>(user.size()));
  data += user;
  data += static_cast<char>(password.size());
  data += password;
  std::string bytes;
  AppendZmtpCommand("HELLO", data, bytes);
  return bytes;
}

std::string Initiate() {
  std::string bytes;
  AppendZmtpCommand("INITIATE", Property("Socket-Type", "PUB"), bytes);
  return bytes;
}

struct Outcome {
  Shaken step;
  ZmtpFault fault;
  std::string replies;
  std::string rest;
};

// In pieces of one byte and at once: the same.
Outcome Shake(const std::string& peer, const std::string& key = "",
              ZmtpType type = ZmtpType::kSub) {
  ZmtpHandshake whole(type, key);
  Outcome outcome;
  std::string_view in = peer;
  outcome.step = whole.Take(in, outcome.replies);
  outcome.fault = whole.fault();
  outcome.rest = in;
  ZmtpHandshake pieces(type, key);
  std::string replies;
  Shaken step = Shaken::kMore;
  for (size_t i = 0; i < peer.size() && step == Shaken::kMore; ++i) {
    std::string_view byte = std::string_view(peer).substr(i, 1);
    step = pieces.Take(byte, replies);
  }
  EXPECT_EQ(step, outcome.step);
  EXPECT_EQ(pieces.fault(), outcome.fault);
  EXPECT_EQ(replies, outcome.replies);
  return outcome;
}

TEST(ZmtpHandshake, EndsWithThePeersReady) {
  for (const char* type : {"PUB", "XPUB"}) {
    const Outcome done = Shake(ZmtpGreeting("NULL", false) + Ready(type) + "rest");
    EXPECT_EQ(done.step, Shaken::kDone);
    EXPECT_EQ(done.rest, "rest");
    EXPECT_EQ(done.replies, "");
  }
  EXPECT_EQ(Shake(ZmtpGreeting("NULL", false) + Ready("ROUTER"), "", ZmtpType::kDealer).step,
            Shaken::kDone);
}

TEST(ZmtpHandshake, WaitsForTheRest) {
  const std::string all = ZmtpGreeting("NULL", false) + Ready("PUB");
  EXPECT_EQ(Shake(all.substr(0, all.size() - 1)).step, Shaken::kMore);
  EXPECT_EQ(Shake("").step, Shaken::kMore);
}

TEST(ZmtpHandshake, NamesWhatIsWrong) {
  const auto fault_of = [](const std::string& peer) {
    const Outcome outcome = Shake(peer);
    EXPECT_EQ(outcome.step, Shaken::kFault);
    return outcome.fault;
  };
  EXPECT_EQ(fault_of("GET / HTTP/1.1\r\n\r\n"), ZmtpFault::kProtocol);
  EXPECT_EQ(fault_of(std::string(64, '\xff')), ZmtpFault::kMechanism);
  std::string old = ZmtpGreeting("NULL", false);
  old[10] = 1;
  EXPECT_EQ(fault_of(old), ZmtpFault::kVersion);
  EXPECT_EQ(fault_of(ZmtpGreeting("PLAIN", true)), ZmtpFault::kMechanism);
  EXPECT_EQ(fault_of(ZmtpGreeting("CURVE", true)), ZmtpFault::kMechanism);
  EXPECT_EQ(fault_of(ZmtpGreeting("NULL", false) + Ready("REP")), ZmtpFault::kType);
  std::string error;
  AppendZmtpCommand("ERROR", std::string("\3why"), error);
  EXPECT_EQ(fault_of(ZmtpGreeting("NULL", false) + error), ZmtpFault::kRefused);
  EXPECT_EQ(fault_of(ZmtpGreeting("NULL", false) + std::string("\0\1x", 3)), ZmtpFault::kProtocol);
  EXPECT_EQ(fault_of(ZmtpGreeting("NULL", false) + Hello("a", "b")), ZmtpFault::kProtocol);
}

TEST(ZmtpHandshake, RefusesALongCommandBeforeItArrives) {
  const std::string head("\6\0\0\0\0\0\0\x20\0", 9);
  const Outcome refused = Shake(ZmtpGreeting("NULL", false) + head);
  EXPECT_EQ(refused.fault, ZmtpFault::kProtocol);
  const std::string huge = "\6" + std::string(8, '\xff');
  EXPECT_EQ(Shake(ZmtpGreeting("NULL", false) + huge).fault, ZmtpFault::kProtocol);
}

TEST(ZmtpHandshake, LetsInWhoKnowsTheKey) {
  const Outcome done =
      Shake(ZmtpGreeting("PLAIN", false) + Hello("any", "secret") + Initiate(), "secret");
  EXPECT_EQ(done.step, Shaken::kDone);
  EXPECT_NE(done.replies.find("WELCOME"), std::string::npos);
  EXPECT_NE(done.replies.find("READY"), std::string::npos);
}

TEST(ZmtpHandshake, KeepsOutWhoDoesNot) {
  for (const char* wrong : {"", "secre", "secrets", "Secret", "secretsecret"}) {
    const Outcome refused = Shake(ZmtpGreeting("PLAIN", false) + Hello("any", wrong), "secret");
    EXPECT_EQ(refused.step, Shaken::kFault) << wrong;
    EXPECT_EQ(refused.fault, ZmtpFault::kKey);
    EXPECT_NE(refused.replies.find("ERROR"), std::string::npos);
  }
  EXPECT_EQ(Shake(ZmtpGreeting("NULL", false) + Ready("PUB"), "secret").fault, ZmtpFault::kKey);
  EXPECT_EQ(Shake(ZmtpGreeting("PLAIN", false) + Initiate(), "secret").fault, ZmtpFault::kProtocol);
  EXPECT_EQ(Shake(ZmtpGreeting("PLAIN", false) + Ready("PUB"), "secret").fault,
            ZmtpFault::kProtocol);
}

// libzmq without a key closes without having sent a byte once it reads PLAIN, and never returns.
TEST(ZmtpHandshake, NamesItsMechanismOnlyToAPeerWhoseOwnIsOnTheWay) {
  ZmtpHandshake handshake(ZmtpType::kSub, "secret");
  const std::string greeting = ZmtpGreeting("PLAIN", true);
  EXPECT_EQ(handshake.Opening(), greeting.substr(0, 11));
  const std::string peer = ZmtpGreeting("NULL", false);
  std::string_view in = std::string_view(peer).substr(0, 10);
  std::string replies;
  EXPECT_EQ(handshake.Take(in, replies), Shaken::kMore);
  EXPECT_EQ(replies, "");
  in = std::string_view(peer).substr(10, 1);
  EXPECT_EQ(handshake.Take(in, replies), Shaken::kMore);
  EXPECT_EQ(replies, greeting.substr(11));
  in = std::string_view(peer).substr(11);
  EXPECT_EQ(handshake.Take(in, replies), Shaken::kFault);
  EXPECT_EQ(handshake.fault(), ZmtpFault::kKey);
  EXPECT_EQ(replies, greeting.substr(11));
}

TEST(ZmtpHandshake, APublisherTakesSubscribersAlone) {
  const auto shake = [](std::string_view type) {
    return Shake(ZmtpGreeting("NULL", false) + Ready(type), "", ZmtpType::kPub);
  };
  EXPECT_EQ(shake("SUB").step, Shaken::kDone);
  EXPECT_EQ(shake("XSUB").step, Shaken::kDone);
  EXPECT_EQ(shake("PUB").fault, ZmtpFault::kType);
  EXPECT_EQ(shake("DEALER").fault, ZmtpFault::kType);
}

TEST(ZmtpHandshake, TellsWhatItIsAndKeepsWhatThePeerSays) {
  const ZmtpHandshake listening(ZmtpType::kSub, "", {{"X-Name", "one"}, {"X-Other", ""}});
  ZmtpHandshake dialling(ZmtpType::kPub, "", {{"X-Name", "two"}});
  const std::string peer = listening.Opening();
  std::string_view in = peer;
  std::string replies;
  EXPECT_EQ(dialling.Take(in, replies), Shaken::kDone);
  EXPECT_EQ(dialling.PeerProperty("x-name"), "one");
  EXPECT_EQ(dialling.PeerProperty("X-Other"), "");
  EXPECT_EQ(dialling.PeerProperty("X-Absent"), std::nullopt);
}

}  // namespace
}  // namespace fathom
