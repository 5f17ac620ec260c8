// Does this request carry one of the keys?
//
// Threads  Any. Replace() from one thread at a time; readers never wait for it.
// Memory   See Replace().
#pragma once

#include <atomic>
#include <memory>
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

  using Keys = std::vector<std::string>;

  KeyRing() : KeyRing(Keys()) {}
  explicit KeyRing(Keys keys) : keys_(new Keys(std::move(keys))) {}
  ~KeyRing() { delete keys_.load(std::memory_order_relaxed); }
  KeyRing(const KeyRing&) = delete;
  KeyRing& operator=(const KeyRing&) = delete;

  bool required() const { return !Current().empty(); }

  // Returns the former keys. Threads that are inside this object may still read them: the caller
  // keeps them until each of these threads has done something else.
  std::unique_ptr<const Keys> Replace(Keys keys) {
    const Keys* const former =
        keys_.exchange(new Keys(std::move(keys)), std::memory_order_acq_rel);  // see Current()
    return std::unique_ptr<const Keys>(former);
  }

  // True if no key is required, or the bearer token (or x-api-key, as Anthropic's clients send it)
  // is one of them. Compares every key in full, so that the duration reveals nothing.
  bool Admits(const RequestHead& head) const {
    const Keys& keys = Current();
    if (keys.empty()) return true;
    const std::string_view presented = Presented(head);
    bool found = false;
    for (const std::string& key : keys) found |= EqualsInConstantTime(key, presented);
    return found;
  }

 private:
  // Pairs with the exchange in Replace().
  const Keys& Current() const { return *keys_.load(std::memory_order_acquire); }

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

  std::atomic<const Keys*> keys_;
};

}  // namespace fathom
