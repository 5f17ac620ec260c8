// Where does this message's body end, and which of these bytes belong to it? For every framing.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "codec/chunked.h"
#include "codec/http_head.h"

namespace fathom {

class BodyDecoder {
 public:
  BodyDecoder() = default;
  BodyDecoder(BodyFraming framing, uint64_t content_length)
      : framing_(framing), left_(content_length) {}

  // Consumes a prefix of `in` with at most one run of body bytes. Call again with the rest until
  // nothing is consumed or done().
  Result<ChunkedDecoder::Step> Feed(std::string_view in) {
    switch (framing_) {
      case BodyFraming::kChunked:
        return chunked_.Feed(in);
      case BodyFraming::kLength: {
        const std::string_view part = in.substr(0, left_);
        left_ -= part.size();
        return ChunkedDecoder::Step{part.size(), part};
      }
      case BodyFraming::kUntilClose:
        return ChunkedDecoder::Step{in.size(), in};
      case BodyFraming::kNone:
        break;
    }
    return ChunkedDecoder::Step{};
  }

  // The body is complete. Always false for a body that ends with the connection.
  bool done() const {
    switch (framing_) {
      case BodyFraming::kChunked:
        return chunked_.done();
      case BodyFraming::kLength:
        return left_ == 0;
      case BodyFraming::kUntilClose:
        return false;
      case BodyFraming::kNone:
        break;
    }
    return true;
  }

  BodyFraming framing() const { return framing_; }

 private:
  BodyFraming framing_ = BodyFraming::kNone;
  uint64_t left_ = 0;
  ChunkedDecoder chunked_;
};

}  // namespace fathom
