// The headers of one HTTP message, and which of them may be passed on.
//
// Memory   Names and values are views into the head they were read from. No allocation.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/text.h"

namespace fathom {

// Headers that the router treats specially; recognised once, while parsing.
enum class HeaderName : uint8_t {
  kOther,
  kAuthorization,
  kClaudeCodeAgentId,    // x-claude-code-agent-id
  kClaudeCodeSessionId,  // x-claude-code-session-id
  kConnection,
  kContentLength,
  kContentType,
  kDataParallelRank,  // x-data-parallel-rank
  kDate,
  kDynamoSessionId,  // x-dynamo-session-id
  kExpect,
  kFathomCachedTokens,  // x-fathom-cached-tokens
  kFathomDpRank,        // x-fathom-dp-rank
  kFathomForwarded,     // x-fathom-forwarded
  kFathomRouting,       // x-fathom-routing
  kFathomWorker,        // x-fathom-worker
  kHost,
  kKeepAlive,
  kProxyAuthenticate,
  kProxyAuthorization,
  kProxyConnection,
  kRequestId,  // x-request-id
  kRetryAfter,
  kServer,
  kSessionId,  // x-session-id
  kTe,
  kThreadId,  // thread-id
  kTrailer,
  kTransferEncoding,
  kUpgrade,
};

struct Header {
  std::string_view name;
  std::string_view value;  // without surrounding white space
  HeaderName id = HeaderName::kOther;
};

// In the order they were sent.
class HeaderList {
 public:
  static constexpr size_t kMax = 128;

  HeaderList() {}  // does not clear the storage, which would cost more than parsing a head

  std::span<const Header> all() const { return {headers_.data(), size_}; }
  // The first of that name, or nullptr.
  const Header* Find(HeaderName id) const;
  const Header* Find(std::string_view name) const;
  bool Has(HeaderName id) const { return (seen_ >> static_cast<unsigned>(id)) & 1; }

  // False if full. Inline, because a parser calls it for every line.
  bool Push(const Header& header) {
    if (size_ == kMax) return false;
    std::construct_at(&headers_[size_++], header);
    seen_ |= uint32_t{1} << static_cast<unsigned>(header.id);
    return true;
  }
  void Clear() { size_ = 0, seen_ = 0; }

 private:
  size_t size_ = 0;
  uint32_t seen_ = 0;  // bit per HeaderName
  union {
    std::array<Header, kMax> headers_;  // only the first size_ are meaningful
  };
};

// True if the header applies to one connection only and must not be relayed (RFC 9110, 7.6.1),
// either by its name or because a Connection header of the same message lists it. Content-Length
// and Host are always relayed: a client that could have them removed could change the meaning of
// the message.
bool IsHopByHop(const Header& header, const HeaderList& headers);

// Calls visit with each element of a comma-separated value.
template <class Visit>
void ForEachElement(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    visit(Trim(list.substr(0, comma)));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

}  // namespace fathom
