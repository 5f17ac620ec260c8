// Where and how was a setting written?
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "diagnose/findings/finding.h"

namespace fathom {

// Bytes of a file.
struct Span {
  size_t offset = 0;
  size_t length = 0;

  bool operator==(const Span&) const = default;
};

// One setting as somebody wrote it: a flag, an environment variable, a key of an engine's own file.
struct Written {
  std::string
      name;  // "--block-size", "DYN_KV_CACHE_BLOCK_SIZE", "kv_cache_config.tokens_per_block"
  std::string value;         // without the quotes of the file's language
  FilePlace place;           // of the value
  std::optional<Span> span;  // of the value with its quotes; nothing: it cannot be edited in place

  bool operator==(const Written&) const = default;
};

// What a program does because of a setting: as written, or by its default.
template <class T>
struct Setting {
  std::optional<T> value;          // nothing: neither the file nor a default that always holds says
  std::optional<Written> written;  // nothing: it is the default
};

}  // namespace fathom
