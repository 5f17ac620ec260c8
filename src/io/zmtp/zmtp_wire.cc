#include "io/zmtp/zmtp_wire.h"

#include <algorithm>

#include "base/check.h"

namespace fathom {
namespace {

constexpr size_t kMechanismBytes = 20;
constexpr size_t kLongestShort = 255;

void AppendBigEndian(uint64_t value, size_t bytes, std::string& out) {
  for (size_t i = bytes; i > 0; --i) out += static_cast<char>(value >> (8 * (i - 1)));
}

void AppendProperty(std::string_view name, std::string_view value, std::string& out) {
  out += static_cast<char>(name.size());
  out += name;
  AppendBigEndian(value.size(), 4, out);
  out += value;
}

std::string_view NameOf(ZmtpType type) {
  switch (type) {
    case ZmtpType::kSub:
      return "SUB";
    case ZmtpType::kDealer:
      return "DEALER";
    case ZmtpType::kPub:
      return "PUB";
  }
  return "";
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

bool SameName(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, Lower, Lower);
}

// Takes the first `size` bytes; false: there are fewer.
bool TakeBytes(std::string_view& from, size_t size, std::string_view& taken) {
  if (from.size() < size) return false;
  taken = from.substr(0, size);
  from.remove_prefix(size);
  return true;
}

bool TakeSized(std::string_view& from, size_t size_bytes, std::string_view& taken) {
  std::string_view number;
  if (!TakeBytes(from, size_bytes, number)) return false;
  size_t size = 0;
  for (const char byte : number) size = size << 8 | static_cast<uint8_t>(byte);
  return TakeBytes(from, size, taken);
}

}  // namespace

std::string_view Describe(ZmtpFault fault) {
  switch (fault) {
    case ZmtpFault::kNone:
      return "the peer closed the connection";
    case ZmtpFault::kProtocol:
      return "the peer does not speak ZeroMQ's protocol (ZMTP 3)";
    case ZmtpFault::kVersion:
      return "the peer speaks a version of ZeroMQ's protocol before ZMTP 3.0";
    case ZmtpFault::kMechanism:
      return "the peer uses another security mechanism";
    case ZmtpFault::kType:
      return "the peer is a ZeroMQ socket of another type";
    case ZmtpFault::kKey:
      return "the peer's key is missing or wrong";
    case ZmtpFault::kRefused:
      return "the peer refused the connection";
    case ZmtpFault::kFrames:
      return "a message has too many frames";
    case ZmtpFault::kSize:
      return "a message is too large";
    case ZmtpFault::kMemory:
      return "messages of all streams together need too much memory";
    case ZmtpFault::kSlow:
      return "a large message was not finished in time";
  }
  return "unknown";
}

std::string ZmtpGreeting(std::string_view mechanism, bool server) {
  CHECK(mechanism.size() <= kMechanismBytes);
  std::string greeting("\xff\0\0\0\0\0\0\0\0\x7f\x03\x01", 12);
  greeting += mechanism;
  greeting.resize(12 + kMechanismBytes);
  greeting += server ? '\1' : '\0';
  greeting.resize(kZmtpGreeting);
  return greeting;
}

void AppendZmtpFrame(uint8_t flags, std::string_view body, std::string& out) {
  const bool is_long = body.size() > kLongestShort;
  out += static_cast<char>(is_long ? flags | kZmtpLong : flags);
  AppendBigEndian(body.size(), is_long ? 8 : 1, out);
  out += body;
}

void AppendZmtpCommand(std::string_view name, std::string_view data, std::string& out) {
  std::string body(1, static_cast<char>(name.size()));
  body += name;
  body += data;
  AppendZmtpFrame(kZmtpCommand, body, out);
}

void AppendZmtpMessage(const ZmqMessage& message, std::string& out) {
  for (const std::string& frame : message) {
    AppendZmtpFrame(&frame == &message.back() ? 0 : kZmtpMore, frame, out);
  }
}

void AppendZmtpSubscription(std::string_view topic, uint8_t minor, std::string& out) {
  if (minor > 0) return AppendZmtpCommand("SUBSCRIBE", topic, out);
  std::string body(1, '\1');
  body += topic;
  AppendZmtpFrame(0, body, out);
}

std::string ZmtpMetadata(ZmtpType type, const ZmtpProperties& properties) {
  std::string metadata;
  AppendProperty("Socket-Type", NameOf(type), metadata);
  if (type == ZmtpType::kDealer) AppendProperty("Identity", "", metadata);
  for (const auto& [name, value] : properties) AppendProperty(name, value, metadata);
  return metadata;
}

std::optional<ZmtpCommandView> ReadZmtpCommand(std::string_view body) {
  ZmtpCommandView command;
  if (!TakeSized(body, 1, command.name) || command.name.empty()) return std::nullopt;
  command.data = body;
  return command;
}

std::optional<std::string_view> FindZmtpProperty(std::string_view metadata, std::string_view name) {
  std::optional<std::string_view> found;
  while (!metadata.empty()) {
    std::string_view key;
    std::string_view value;
    if (!TakeSized(metadata, 1, key) || key.empty() || !TakeSized(metadata, 4, value)) {
      return std::nullopt;
    }
    if (!found && SameName(key, name)) found = value;
  }
  return found;
}

}  // namespace fathom
