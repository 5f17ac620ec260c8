// Is this message from somebody who has the key, and as it was sent?
//
// HMAC-SHA-256, of which the first kTag bytes follow the message. It proves the sender's key and
// the bytes, not that the message is new: numbers in the message do
// (router/replicas/origin_gate.h).
//
// Threads  Any.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct evp_mac_ctx_st;  // of OpenSSL

namespace fathom {

class MessageSeal {
 public:
  static constexpr size_t kTag = 16;

  // Of any length.
  explicit MessageSeal(std::string_view key);

  // Appends the tag.
  void Close(std::string& message) const;
  // The message without its tag; nullopt: of another key, or changed.
  std::optional<std::string_view> Open(std::string_view sealed) const;

  // A number that everybody with the key computes, and nobody else can.
  uint64_t Derive(std::string_view purpose) const;

 private:
  using Tag = std::array<unsigned char, 32>;
  Tag TagOf(std::string_view message) const;

  struct Free {
    void operator()(evp_mac_ctx_st* context) const;
  };
  // With the key; each message begins with a copy of it.
  const std::unique_ptr<evp_mac_ctx_st, Free> keyed_;
};

}  // namespace fathom
