// Places engine hashes in a standard table so that a publisher cannot choose hashes that collide:
// it does not know the secret.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fathom {

struct SecretHash {
  uint64_t secret = 0;
  size_t operator()(uint64_t hash) const {
    uint64_t mixed = (hash ^ secret) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93u;
    return mixed ^ (mixed >> 32);
  }
};

}  // namespace fathom
