// In which tier and cache group does a rank hold a block?
#pragma once

#include <cstdint>
#include <string_view>

namespace fathom {

// Where the block is stored, fastest first.
enum class Tier : uint8_t { kDevice, kHost, kDisk, kExternal };
constexpr size_t kTiers = 4;
std::string_view Name(Tier tier);

// Which blocks before a boundary a cache group needs for a prompt to continue from there.
enum class GroupKind : uint8_t {
  kFull,         // all of them
  kWindow,       // those within one window before it
  kUnsupported,  // a rule that Fathom does not implement
};

}  // namespace fathom
