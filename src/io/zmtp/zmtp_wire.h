// How are greetings, commands and frames of ZMTP 3.1 written, and why may a peer be cut off?
//
// https://rfc.zeromq.org/spec/37/ (3.1) and /spec/23/ (3.0), mechanisms NULL and PLAIN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/net/zmq_message.h"

namespace fathom {

constexpr size_t kZmtpGreeting = 64;  // bytes

constexpr uint8_t kZmtpMore = 1;
constexpr uint8_t kZmtpLong = 2;
constexpr uint8_t kZmtpCommand = 4;

// Our side of a connection. Publishers are followed by a SUB, replays are requested by a DEALER. A
// PUB sends everything, whatever its subscriber asks for.
enum class ZmtpType : uint8_t { kSub, kDealer, kPub };

enum class ZmtpFault : uint8_t {
  kNone,
  kProtocol,   // not ZMTP, or against its rules
  kVersion,    // ZMTP before 3.0
  kMechanism,  // another security mechanism than ours
  kType,       // a socket type that does not fit ours
  kKey,        // the key is missing or wrong
  kRefused,    // the peer refused us
  kFrames,     // too many frames in a message
  kSize,       // too many bytes in a message
  kMemory,     // no memory left for messages of this size
  kSlow,       // a large message was begun and not finished in time
};
// For log lines: "the message has too many frames".
std::string_view Describe(ZmtpFault fault);

// `server` is true for the side that checks the key of PLAIN.
std::string ZmtpGreeting(std::string_view mechanism, bool server);
void AppendZmtpFrame(uint8_t flags, std::string_view body, std::string& out);
void AppendZmtpCommand(std::string_view name, std::string_view data, std::string& out);
void AppendZmtpMessage(const ZmqMessage& message, std::string& out);
// SUBSCRIBE is a command since 3.1, and a message before.
void AppendZmtpSubscription(std::string_view topic, uint8_t minor, std::string& out);
// Names and values; names of applications begin with "X-".
using ZmtpProperties = std::vector<std::pair<std::string, std::string>>;
// What READY and INITIATE say about us.
std::string ZmtpMetadata(ZmtpType type, const ZmtpProperties& properties = {});

struct ZmtpCommandView {
  std::string_view name;
  std::string_view data;
};
// nullopt: the body is not a command.
std::optional<ZmtpCommandView> ReadZmtpCommand(std::string_view body);
// The value of a property, by its name in any case. nullopt: it is missing, or the metadata are
// malformed.
std::optional<std::string_view> FindZmtpProperty(std::string_view metadata, std::string_view name);

}  // namespace fathom
