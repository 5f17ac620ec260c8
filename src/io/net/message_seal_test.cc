#include "io/net/message_seal.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

std::string Closed(const MessageSeal& seal, std::string message) {
  seal.Close(message);
  return message;
}

TEST(MessageSeal, OpensWhatWasClosedWithTheSameKey) {
  const MessageSeal seal("a key");
  for (const std::string& message :
       {std::string(), std::string("m"), std::string("\0\xff", 2), std::string(300'000, 'x')}) {
    const std::string closed = Closed(seal, message);
    EXPECT_EQ(closed.size(), message.size() + MessageSeal::kTag);
    EXPECT_EQ(MessageSeal("a key").Open(closed), message);
  }
}

TEST(MessageSeal, IsTheHmacOfTheStandard) {
  // RFC 4231, test case 2.
  const std::string closed = Closed(MessageSeal("Jefe"), "what do ya want for nothing?");
  const std::string_view tag = std::string_view(closed).substr(closed.size() - MessageSeal::kTag);
  EXPECT_EQ(tag, "\x5b\xdc\xc1\x46\xbf\x60\x75\x4e\x6a\x04\x24\x26\x08\x95\x75\xc7");
}

TEST(MessageSeal, RefusesAnotherKey) {
  const std::string closed = Closed(MessageSeal("a key"), "message");
  for (const std::string_view key : {"", "a", "a kez", "a key "}) {
    EXPECT_FALSE(MessageSeal(key).Open(closed).has_value()) << key;
  }
}

TEST(MessageSeal, RefusesEveryChangedBitAndEveryPart) {
  const MessageSeal seal("a key");
  const std::string closed = Closed(seal, "message");
  for (size_t bit = 0; bit < closed.size() * 8; ++bit) {
    std::string changed = closed;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(seal.Open(changed).has_value()) << bit;
  }
  for (size_t size = 0; size < closed.size(); ++size) {
    EXPECT_FALSE(seal.Open(std::string_view(closed).substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(seal.Open(closed + '\0').has_value());
}

TEST(MessageSeal, DerivesANumberOfTheKeyAndThePurpose) {
  const MessageSeal seal("a key");
  EXPECT_EQ(seal.Derive("sessions"), MessageSeal("a key").Derive("sessions"));
  EXPECT_NE(seal.Derive("sessions"), seal.Derive("pins"));
  EXPECT_NE(seal.Derive("sessions"), MessageSeal("another key").Derive("sessions"));
}

}  // namespace
}  // namespace fathom
