// Does this request carry one of the keys?
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "codec/http_head.h"

namespace fathom {

class KeyRing {
 public:
  static constexpr std::string_view kApiKeyHeader = "x-api-key";

  KeyRing() = default;
  explicit KeyRing(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  bool required() const { return !keys_.empty(); }

  // True if no key is required, or the bearer token (or x-api-key, as Anthropic's clients send it)
  // is one of them. Looks at every key in full, so that its time tells nothing.
  bool Admits(const RequestHead& head) const {
    if (keys_.empty()) return true;
    const std::string_view presented = Presented(head);
    bool found = false;
    for (const std::string& key : keys_) found |= EqualsInConstantTime(key, presented);
    return found;
  }

 private:
  static std::string_view Presented(const RequestHead& head) {
    constexpr std::string_view kBearer = "bearer ";
    if (const Header* header = head.headers.Find(HeaderName::kAuthorization)) {
      if (EqualsIgnoreCase(header->value.substr(0, kBearer.size()), kBearer)) {
        return Trim(header->value.substr(kBearer.size()));
      }
      return {};
    }
    const Header* const header = head.headers.Find(kApiKeyHeader);
    return header != nullptr ? header->value : std::string_view();
  }

  std::vector<std::string> keys_;
};

}  // namespace fathom
