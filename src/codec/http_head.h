// What does this HTTP/1.1 head contain, and where does its body end?
//
// Strict on purpose: everything that two parsers could read differently is refused, because request
// smuggling needs a router that reads a request differently from its engine. Refused are: bare LF
// or CR, obsolete folding, white space before the colon, control bytes, repeated or non-decimal
// Content-Length, Content-Length together with Transfer-Encoding, any Transfer-Encoding but a
// single "chunked", a request without exactly one Host (HTTP/1.1), versions other than 1.0 and 1.1.
//
// Memory   Heads are views into the caller's buffer and live no longer than it. No allocation.
// Errors   kCaller for requests, kPeer for responses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "codec/header_list.h"

namespace fathom {

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

// Finds the end of a head that arrives in pieces, reading each byte once. An empty line at the very
// beginning is returned as a head of length 2, which no parser accepts: a lenient caller skips it
// first. Once a head is found, the finder is ready for another.
class HeadFinder {
 public:
  // `in` is everything received so far, from the first byte of the head. Returns the length of the
  // head with its blank line, 0 if it is not complete yet, an error (kCaller) at the first bare LF.
  Result<size_t> Find(std::string_view in);

 private:
  size_t scanned_ = 0;
};

// `head` is exactly one head, blank line included (as HeadFinder measured it). After an error, the
// content of `out` is undefined.
Result<void> ParseRequestHead(std::string_view head, RequestHead& out);

// A response to HEAD, and 1xx, 204 and 304, have no body whatever their headers say.
Result<void> ParseResponseHead(std::string_view head, bool to_head_request, ResponseHead& out);

}  // namespace fathom
