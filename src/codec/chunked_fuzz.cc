// A chunked body must decode to the same bytes however it is split, and to the same bytes as with
// another strict parser (http_parser).
#include <http_parser.h>

#include <string>

#include "base/check.h"
#include "codec/chunked.h"

namespace fathom {
namespace {

struct Decoded {
  std::string payload;
  size_t consumed = 0;
  bool done = false;
  bool wrong = false;

  friend bool operator==(const Decoded&, const Decoded&) = default;
};

Decoded DecodeInPieces(std::string_view in, size_t piece) {
  ChunkedDecoder decoder;
  Decoded out;
  while (!in.empty() && !decoder.done()) {
    const Result<ChunkedDecoder::Step> step = decoder.Feed(in.substr(0, piece));
    if (!step) {
      out.wrong = true;
      out.consumed = 0;  // how far it got depends on the split; that it stopped does not
      return out;
    }
    CHECK(step->consumed > 0 && step->payload.size() <= step->consumed);
    out.payload += step->payload;
    out.consumed += step->consumed;
    in.remove_prefix(step->consumed);
  }
  out.done = decoder.done();
  return out;
}

// The other parser's result for the same bytes.
struct Reading {
  std::string body;
  bool done = false;
};

int OnBody(http_parser* parser, const char* at, size_t length) {
  static_cast<Reading*>(parser->data)->body.append(at, length);
  return 0;
}

int OnComplete(http_parser* parser) {
  static_cast<Reading*>(parser->data)->done = true;
  http_parser_pause(parser, 1);
  return 0;
}

Reading ReadOtherwise(std::string_view body, http_errno& error) {
  http_parser_settings settings;
  http_parser_settings_init(&settings);
  settings.on_body = OnBody;
  settings.on_message_complete = OnComplete;
  Reading reading;
  http_parser parser;
  http_parser_init(&parser, HTTP_REQUEST);
  parser.data = &reading;
  const std::string text =
      std::string("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").append(body);
  http_parser_execute(&parser, &settings, text.data(), text.size());
  error = HTTP_PARSER_ERRNO(&parser);
  return reading;
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  const Decoded whole = DecodeInPieces(in, in.size());
  for (const size_t piece : {1, 2, 7}) CHECK(DecodeInPieces(in, piece) == whole);
  if (whole.wrong) return 0;
  http_errno error;
  const Reading theirs = ReadOtherwise(in.substr(0, whole.consumed), error);
  CHECK(theirs.body == whole.payload);
  // It reads trailers as headers of the message, and so refuses some that we skip unread.
  const bool refused = error != HPE_OK && error != HPE_PAUSED;
  const bool trailers = whole.done && !in.substr(0, whole.consumed).ends_with("0\r\n\r\n");
  if (!refused) CHECK(theirs.done == whole.done);
  if (whole.done) CHECK(!refused || trailers);
  return 0;
}
