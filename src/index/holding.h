// In what form a rank may hold a block.
#pragma once

#include <cstdint>
#include <string_view>

namespace fathom {

// Where the block lies, fastest first.
enum class Tier : uint8_t { kDevice, kHost, kDisk, kExternal };
constexpr size_t kTiers = 4;
std::string_view Name(Tier tier);

// What a cache group asks of the blocks before a boundary, for a prompt to be continued there.
enum class GroupKind : uint8_t {
  kFull,         // all of them
  kWindow,       // those that reach one window back
  kUnsupported,  // a rule that is not known here
};

}  // namespace fathom
