#include "io/net/message_seal.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include <cstring>

#include "base/check.h"

namespace fathom {

MessageSeal::MessageSeal(std::string_view key) : key_(key) {}

MessageSeal::Tag MessageSeal::TagOf(std::string_view message) const {
  Tag tag;
  unsigned length = 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(message.data());
  CHECK(HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()), bytes, message.size(),
             tag.data(), &length) != nullptr);
  CHECK(length == tag.size());
  return tag;
}

void MessageSeal::Close(std::string& message) const {
  const Tag tag = TagOf(message);
  message.append(reinterpret_cast<const char*>(tag.data()), kTag);
}

std::optional<std::string_view> MessageSeal::Open(std::string_view sealed) const {
  if (sealed.size() < kTag) return std::nullopt;
  const std::string_view message = sealed.substr(0, sealed.size() - kTag);
  const Tag tag = TagOf(message);
  // In the same time whatever differs, so that no tag can be found byte by byte.
  if (CRYPTO_memcmp(tag.data(), sealed.data() + message.size(), kTag) != 0) return std::nullopt;
  return message;
}

uint64_t MessageSeal::Derive(std::string_view purpose) const {
  std::string question("derive ");
  question += purpose;
  const Tag tag = TagOf(question);
  uint64_t number = 0;
  std::memcpy(&number, tag.data(), sizeof(number));
  return number;
}

}  // namespace fathom
