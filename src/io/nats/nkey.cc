#include "io/nats/nkey.h"

#include <cstdint>
#include <optional>

#include "base/text.h"
#include "io/net/ed25519.h"

namespace fathom {
namespace {

constexpr std::string_view kBase32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
constexpr uint8_t kUserPrefix = 20 << 3;  // 'U' as the first letter
constexpr size_t kPrefixOfSeed = 2;
constexpr size_t kSeedBytes = 32;
constexpr size_t kChecksum = 2;

std::optional<std::string> FromBase32(std::string_view text) {
  std::string bytes;
  uint32_t gathered = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const size_t value = kBase32.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    gathered = (gathered << 5 | static_cast<uint32_t>(value)) & 0xffff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(gathered >> bits);
  }
  return bytes;
}

std::string ToBase32(std::string_view bytes) {
  std::string text;
  uint32_t gathered = 0;
  unsigned bits = 0;
  for (const char byte : bytes) {
    gathered = (gathered << 8 | static_cast<uint8_t>(byte)) & 0xffff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += kBase32[gathered >> bits & 31];
    }
  }
  if (bits > 0) text += kBase32[gathered << (5 - bits) & 31];
  return text;
}

// CRC-16 of XMODEM, the lower byte first.
std::string ChecksumOf(std::string_view bytes) {
  uint16_t sum = 0;
  for (const char byte : bytes) {
    sum = static_cast<uint16_t>(sum ^ static_cast<uint8_t>(byte) << 8);
    for (int bit = 0; bit < 8; ++bit) {
      sum = static_cast<uint16_t>((sum & 0x8000) != 0 ? sum << 1 ^ 0x1021 : sum << 1);
    }
  }
  return {static_cast<char>(sum), static_cast<char>(sum >> 8)};
}

// The 32 bytes of the seed in `text`.
Result<std::string> SeedIn(std::string_view text) {
  for (const std::string_view line : SplitAny(text, "\r\n")) {
    const std::string_view seed = Trim(line);
    if (!seed.starts_with("SU")) continue;
    const auto bytes = FromBase32(seed);
    const bool whole = bytes && bytes->size() == kPrefixOfSeed + kSeedBytes + kChecksum &&
                       bytes->ends_with(ChecksumOf(bytes->substr(0, kPrefixOfSeed + kSeedBytes)));
    if (!whole) return Fail(Blame::kCaller, "the seed is damaged: its checksum does not match");
    return bytes->substr(kPrefixOfSeed, kSeedBytes);
  }
  return Fail(Blame::kCaller, "no nkey seed of a user in it; it is a line that begins with SU");
}

}  // namespace

Result<std::string> NkeyUserOf(std::string_view text) {
  TRY(const std::string seed, SeedIn(text));
  std::string user(1, static_cast<char>(kUserPrefix));
  user += Ed25519PublicKey(seed).value();
  user += ChecksumOf(user);
  return ToBase32(user);
}

Result<std::string> NkeySignature(std::string_view text, std::string_view signs) {
  TRY(const std::string seed, SeedIn(text));
  return Ed25519Sign(seed, signs).value();
}

}  // namespace fathom
