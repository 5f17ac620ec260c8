#include "io/net/message_seal.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <cstring>

#include "base/check.h"

namespace fathom {
namespace {

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

EVP_MAC_CTX* KeyedHmac(std::string_view key) {
  EVP_MAC* const hmac = EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr);
  CHECK(hmac != nullptr);
  EVP_MAC_CTX* const context = EVP_MAC_CTX_new(hmac);
  EVP_MAC_free(hmac);  // the context keeps it
  CHECK(context != nullptr);
  std::string digest(OSSL_DIGEST_NAME_SHA2_256);
  const std::array parameters = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), digest.size()),
      OSSL_PARAM_construct_end()};
  // A key that is null would mean "the key as before".
  CHECK(EVP_MAC_init(context, Bytes(key.empty() ? "" : key), key.size(), parameters.data()) == 1);
  return context;
}

}  // namespace

void MessageSeal::Free::operator()(evp_mac_ctx_st* context) const { EVP_MAC_CTX_free(context); }

MessageSeal::MessageSeal(std::string_view key) : keyed_(KeyedHmac(key)) {}

MessageSeal::Tag MessageSeal::TagOf(std::string_view message) const {
  const std::unique_ptr<EVP_MAC_CTX, Free> context(EVP_MAC_CTX_dup(keyed_.get()));
  CHECK(context != nullptr);
  Tag tag;
  size_t length = 0;
  CHECK(EVP_MAC_update(context.get(), Bytes(message), message.size()) == 1);
  CHECK(EVP_MAC_final(context.get(), tag.data(), &length, tag.size()) == 1);
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
