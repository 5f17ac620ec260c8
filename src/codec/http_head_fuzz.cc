// Everything that our parser accepts, another strict parser (http_parser, which node was built on)
// must read in the same way: request smuggling needs two parsers that disagree about a message.
#include <http_parser.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "codec/http_head.h"

namespace fathom {
namespace {

// The other parser's result.
struct Reading {
  std::string target;
  std::string reason;
  std::vector<std::pair<std::string, std::string>> headers;
  bool in_value = false;
  bool complete = false;
  bool chunked = false;
  std::optional<uint64_t> length;
};

Reading& Of(http_parser* parser) { return *static_cast<Reading*>(parser->data); }

int OnTarget(http_parser* parser, const char* at, size_t length) {
  Of(parser).target.append(at, length);
  return 0;
}

int OnReason(http_parser* parser, const char* at, size_t length) {
  Of(parser).reason.append(at, length);
  return 0;
}

int OnName(http_parser* parser, const char* at, size_t length) {
  Reading& reading = Of(parser);
  if (reading.in_value || reading.headers.empty()) reading.headers.emplace_back();
  reading.in_value = false;
  reading.headers.back().first.append(at, length);
  return 0;
}

int OnValue(http_parser* parser, const char* at, size_t length) {
  Of(parser).in_value = true;
  Of(parser).headers.back().second.append(at, length);
  return 0;
}

int OnHeadersComplete(http_parser* parser) {
  Reading& reading = Of(parser);
  reading.complete = true;
  reading.chunked = parser->flags & F_CHUNKED;
  if (parser->flags & F_CONTENTLENGTH) reading.length = parser->content_length;
  return 0;
}

// Runs the other parser over the head; nullopt if it refuses.
std::optional<Reading> ReadOtherwise(std::string_view head, http_parser_type type,
                                     http_parser& parser) {
  http_parser_settings settings;
  http_parser_settings_init(&settings);
  settings.on_url = OnTarget;
  settings.on_status = OnReason;
  settings.on_header_field = OnName;
  settings.on_header_value = OnValue;
  settings.on_headers_complete = OnHeadersComplete;
  Reading reading;
  http_parser_init(&parser, type);
  parser.data = &reading;
  http_parser_execute(&parser, &settings, head.data(), head.size());
  if (HTTP_PARSER_ERRNO(&parser) != HPE_OK || !reading.complete) return std::nullopt;
  return reading;
}

// It has a fixed list of methods; we accept any token.
bool KnowsMethod(std::string_view method) {
  for (int i = HTTP_DELETE; i <= HTTP_SOURCE; ++i) {
    if (method == http_method_str(static_cast<http_method>(i))) return true;
  }
  return false;
}

// For the framing, it takes a longer name, "Transfer-EncodingX", for the shorter one.
bool MisreadsFraming(const HeaderList& headers) {
  constexpr std::string_view kName = "transfer-encoding";
  return std::ranges::any_of(headers.all(), [&](const Header& header) {
    return header.name.size() > kName.size() &&
           EqualsIgnoreCase(header.name.substr(0, kName.size()), kName);
  });
}

// It refuses a tab after the digits of Content-Length, where the standard allows one. (The value
// that we relay does not contain it.)
bool MayRefuse(const HeaderList& headers) {
  const Header* length = headers.Find(HeaderName::kContentLength);
  if (length == nullptr) return false;
  const char* after = length->value.data() + length->value.size();  // the line ends with CR
  while (*after == ' ') ++after;
  return *after == '\t';
}

void CompareHeaders(const HeaderList& ours, const Reading& theirs) {
  CHECK(ours.all().size() == theirs.headers.size());
  for (size_t i = 0; i < theirs.headers.size(); ++i) {
    CHECK(ours.all()[i].name == theirs.headers[i].first);
    CHECK(ours.all()[i].value == Trim(theirs.headers[i].second));
  }
}

// We may close a connection that it keeps open, but not the reverse. It treats the non-standard
// Proxy-Connection as Connection, and in lists with empty elements it misses the keep-alive that
// HTTP/1.0 needs.
void CompareKeepAlive(bool ours, const HeaderList& headers, const http_parser& theirs) {
  if (theirs.http_minor == 0 || headers.Has(HeaderName::kProxyConnection)) return;
  if (ours) CHECK(http_should_keep_alive(&theirs));
}

void CheckRequest(std::string_view head) {
  RequestHead ours;
  if (!ParseRequestHead(head, ours)) return;
  if (!KnowsMethod(ours.method) || MisreadsFraming(ours.headers)) return;
  http_parser parser;
  const std::optional<Reading> theirs = ReadOtherwise(head, HTTP_REQUEST, parser);
  if (!theirs && MayRefuse(ours.headers)) return;
  CHECK(theirs);
  CHECK(ours.method == http_method_str(static_cast<http_method>(parser.method)));
  CHECK(ours.target == theirs->target);
  CHECK(parser.http_major == 1 && parser.http_minor == ours.minor_version);
  CompareHeaders(ours.headers, *theirs);
  CHECK((ours.framing == BodyFraming::kChunked) == theirs->chunked);
  CHECK((ours.framing == BodyFraming::kLength) == theirs->length.has_value());
  if (theirs->length) CHECK(ours.content_length == *theirs->length);
  CompareKeepAlive(ours.keep_alive, ours.headers, parser);
}

void CheckResponse(std::string_view head) {
  ResponseHead ours;
  if (!ParseResponseHead(head, false, ours) || MisreadsFraming(ours.headers)) return;
  http_parser parser;
  const std::optional<Reading> theirs = ReadOtherwise(head, HTTP_RESPONSE, parser);
  if (!theirs && MayRefuse(ours.headers)) return;
  CHECK(theirs);
  CHECK(ours.status == parser.status_code);
  CHECK(ours.reason == Trim(theirs->reason));
  CompareHeaders(ours.headers, *theirs);
  CompareKeepAlive(ours.keep_alive, ours.headers, parser);
  if (ours.framing == BodyFraming::kNone) return;  // by status, whatever the headers say
  CHECK((ours.framing == BodyFraming::kChunked) == theirs->chunked);
  CHECK((ours.framing == BodyFraming::kLength) == theirs->length.has_value());
  if (theirs->length) CHECK(ours.content_length == *theirs->length);
}

// The length of the head, or nullopt for an error.
std::optional<size_t> FindInPieces(std::string_view in, size_t piece) {
  HeadFinder finder;
  for (size_t size = 0;; size = std::min(size + piece, in.size())) {
    const Result<size_t> length = finder.Find(in.substr(0, size));
    if (!length) return std::nullopt;
    if (*length > 0 || size == in.size()) return *length;
  }
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  const std::optional<size_t> length = FindInPieces(in, in.size() + 1);
  for (const size_t piece : {1, 3, 16}) CHECK(FindInPieces(in, piece) == length);
  if (!length || *length == 0) {
    RequestHead head;
    CHECK(!ParseRequestHead(in, head));  // the parser itself must check that the head is complete
    return 0;
  }
  CHECK(in.substr(0, *length).ends_with("\r\n"));
  if (in.starts_with("HTTP/")) {
    CheckResponse(in.substr(0, *length));
  } else {
    CheckRequest(in.substr(0, *length));
  }
  return 0;
}
