// What does a field of a model's config.json say?
//
// Models of several parts keep their language part in an object of its own. A field is looked for
// there first, then at the top; a null counts as missing, as in transformers.
//
// Memory  Refers to the document, which must outlive it.
// Errors  kCaller, naming the field, what it is and what is needed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/json.h"

namespace fathom {

class ConfigFields {
 public:
  // Fields that mean the same go by several names; the first that is there counts.
  using Names = std::initializer_list<std::string_view>;

  static constexpr uint64_t kMaxDimension = 1 << 24;

  explicit ConfigFields(const Json& root);

  // Null: missing.
  const Json* Find(std::string_view name) const;

  // A number from 0 to `most`; nothing if missing.
  Result<std::optional<uint64_t>> Number(Names names, uint64_t most = kMaxDimension) const;
  // ... that must be there and not 0.
  Result<uint64_t> Needed(Names names, uint64_t most = kMaxDimension) const;
  // Missing or no text: empty.
  std::string Text(Names names) const;
  bool Flag(std::string_view name, bool fallback) const;

 private:
  const Json& root_;
  const Json* part_;  // the language part; the root if there is none
};

}  // namespace fathom
