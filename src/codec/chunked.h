// Removes the framing of a chunked body, and adds it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace fathom {

class ChunkedDecoder {
 public:
  struct Step {
    size_t consumed = 0;       // bytes of the input that were used
    std::string_view payload;  // body bytes among them (a view into the input), possibly none
  };

  // Consumes a prefix of `in` that holds at most one run of payload. Call again with the rest until
  // nothing is left or done(). Trailers are skipped. Sizes that overflow, bare LF, extra bytes
  // after a size and unreasonably long extensions or trailers are errors (kPeer; a server replaces
  // that by kCaller). Payload before an error is returned first, however the input is split; after
  // an error the decoder must not be used again.
  Result<Step> Feed(std::string_view in);

  bool done() const { return state_ == State::kDone; }

 private:
  enum class State : uint8_t {
    kSize,
    kExtension,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailer,
    kTrailerName,
    kTrailerValue,
    kTrailerLf,
    kEndLf,
    kDone
  };

  // Null if the byte is valid here, else what is wrong with it.
  const char* TakeFraming(char c);
  const char* TakeSize(char c);
  const char* TakeTrailerStart(char c);
  const char* TakeTrailerName(char c);
  const char* TakeText(char c, State at_cr);
  const char* Expect(char c, char wanted, State then);
  std::string_view TakeData(std::string_view in);

  State state_ = State::kSize;
  uint8_t digits_ = 0;   // of the current size
  uint64_t left_ = 0;    // of the current chunk
  size_t overhead_ = 0;  // bytes of extensions and trailers not yet offset by payload
};

// "1f4\r\n" for a chunk of 500 bytes.
class ChunkPrefix {
 public:
  explicit ChunkPrefix(uint64_t size);
  std::string_view text() const { return {text_.data() + begin_, text_.size() - begin_}; }

 private:
  std::array<char, 18> text_;
  size_t begin_;
};

constexpr std::string_view kChunkSuffix = "\r\n";
constexpr std::string_view kLastChunk = "0\r\n\r\n";
constexpr std::string_view kSuffixAndLastChunk = "\r\n0\r\n\r\n";

}  // namespace fathom
