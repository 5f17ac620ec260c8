// The name of a text: a 128-bit hash, XXH3 with a secret seed, so that nobody can make two texts
// that share one. Names can be chained, so that what begins alike is named alike up to there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace fathom {

struct TextKey {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const TextKey&, const TextKey&) = default;
};

TextKey KeyOfText(std::string_view text, uint64_t secret);

// The name of what `before` names, with what `next` names after it: it makes a difference where one
// ends and the next begins.
TextKey ChainText(const TextKey& before, const TextKey& next, uint64_t secret);
inline TextKey ChainText(const TextKey& before, std::string_view next, uint64_t secret) {
  return ChainText(before, KeyOfText(next, secret), secret);
}

}  // namespace fathom

template <>
struct std::hash<fathom::TextKey> {
  size_t operator()(const fathom::TextKey& key) const { return key.low; }
};
