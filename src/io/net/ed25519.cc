#include "io/net/ed25519.h"

#include <openssl/evp.h>

#include <memory>

namespace fathom {
namespace {

constexpr size_t kEd25519Key = 32;
constexpr size_t kEd25519Signature = 64;

using Ed25519Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

const unsigned char* KeyBytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* RoomIn(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

// Null: the seed has a wrong length.
Ed25519Key Ed25519KeyOf(std::string_view seed) {
  EVP_PKEY* const key =
      seed.size() != kEd25519Key
          ? nullptr
          : EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, KeyBytes(seed), seed.size());
  return {key, &EVP_PKEY_free};
}

}  // namespace

std::optional<std::string> Ed25519PublicKey(std::string_view seed) {
  const Ed25519Key key = Ed25519KeyOf(seed);
  std::string public_key(kEd25519Key, '\0');
  size_t size = public_key.size();
  const bool made = key && EVP_PKEY_get_raw_public_key(key.get(), RoomIn(public_key), &size) == 1;
  if (!made) return std::nullopt;
  return public_key;
}

std::optional<std::string> Ed25519Sign(std::string_view seed, std::string_view message) {
  const Ed25519Key key = Ed25519KeyOf(seed);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> signing(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  std::string signature(kEd25519Signature, '\0');
  size_t size = signature.size();
  const bool made = key && signing &&
                    EVP_DigestSignInit(signing.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
                    EVP_DigestSign(signing.get(), RoomIn(signature), &size, KeyBytes(message),
                                   message.size()) == 1;
  if (!made) return std::nullopt;
  return signature;
}

}  // namespace fathom
