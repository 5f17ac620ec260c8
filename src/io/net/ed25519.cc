#include "io/net/ed25519.h"

#include <openssl/evp.h>

#include <memory>

namespace fathom {

std::optional<std::string> Ed25519PublicKey(std::string_view seed) {
  constexpr size_t kKeyBytes = 32;
  if (seed.size() != kKeyBytes) return std::nullopt;
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr,
                                   reinterpret_cast<const unsigned char*>(seed.data()),
                                   seed.size()),
      &EVP_PKEY_free);
  std::string public_key(kKeyBytes, '\0');
  size_t size = public_key.size();
  const bool made =
      key && EVP_PKEY_get_raw_public_key(
                 key.get(), reinterpret_cast<unsigned char*>(public_key.data()), &size) == 1;
  if (!made) return std::nullopt;
  return public_key;
}

}  // namespace fathom
