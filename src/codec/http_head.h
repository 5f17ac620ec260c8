// What does this HTTP/1.1 head say, and where does its body end?
//
// Strict on purpose: whatever two parsers could read in two ways is refused, because a router that
// reads a request differently from its engine can be made to smuggle one. Refused are: bare LF or
// CR, obsolete folding, white space before the colon, control bytes, repeated or non-decimal
// Content-Length, Content-Length together with Transfer-Encoding, any Transfer-Encoding but a
// single "chunked", a request without exactly one Host (HTTP/1.1), versions other than 1.0 and 1.1.
//
// Memory   Heads are views into the caller's buffer and live no longer than it. No allocation.
// Errors   kCaller for requests, kPeer for responses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace fathom {

// The headers a router treats specially; recognised once, while parsing.
enum class HeaderName : uint8_t {
  kOther,
  kAuthorization,
  kConnection,
  kContentLength,
  kContentType,
  kDate,
  kExpect,
  kFathomWorker,  // x-fathom-worker
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

  HeaderList() {}  // leaves the storage alone: clearing it would cost more than parsing a head

  std::span<const Header> all() const { return {headers_.data(), size_}; }
  // The first of that name, or nullptr.
  const Header* Find(HeaderName id) const;
  const Header* Find(std::string_view name) const;
  bool Has(HeaderName id) const { return (seen_ >> static_cast<unsigned>(id)) & 1; }

  bool Push(const Header& header);  // false when full
  void Clear() { size_ = 0, seen_ = 0; }

 private:
  size_t size_ = 0;
  uint32_t seen_ = 0;  // bit per HeaderName
  union {
    std::array<Header, kMax> headers_;  // only the first size_ are meaningful
  };
};

// True if the header concerns one connection only and must not be relayed (RFC 9110, 7.6.1),
// whether by its name or because a Connection header of the same message lists it. Content-Length
// and Host are always relayed: who could have them left out could change what the message means.
bool IsHopByHop(const Header& header, const HeaderList& headers);

enum class BodyFraming : uint8_t { kNone, kLength, kChunked, kUntilClose };

struct RequestHead {
  std::string_view method;
  std::string_view target;
  int minor_version = 1;
  HeaderList headers;
  BodyFraming framing = BodyFraming::kNone;
  uint64_t content_length = 0;
  bool keep_alive = true;
  bool expect_continue = false;
};

struct ResponseHead {
  int status = 0;
  std::string_view reason;
  int minor_version = 1;
  HeaderList headers;
  BodyFraming framing = BodyFraming::kNone;
  uint64_t content_length = 0;
  bool keep_alive = true;
};

// Finds the end of a head that arrives in pieces, looking at each byte once. An empty line at the
// very beginning is a head of its own, of length 2, which no parser accepts: who wants to be
// lenient about it skips it first. Once a head is found, the finder is ready for another.
class HeadFinder {
 public:
  // `in` is everything received so far, from the first byte of the head. Returns the length of the
  // head with its blank line, 0 if it is not complete yet, an error (kCaller) at the first bare LF.
  Result<size_t> Find(std::string_view in);

 private:
  size_t scanned_ = 0;
};

// `head` is exactly one head, blank line included (as HeadFinder measured it). After an error, what
// `out` says means nothing.
Result<void> ParseRequestHead(std::string_view head, RequestHead& out);

// A response to HEAD, and 1xx, 204 and 304, have no body whatever their headers say.
Result<void> ParseResponseHead(std::string_view head, bool to_head_request, ResponseHead& out);

}  // namespace fathom
