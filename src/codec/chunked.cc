#include "codec/chunked.h"

#include <algorithm>

namespace fathom {
namespace {

constexpr size_t kMaxOverhead = 16 * 1024;
constexpr uint8_t kMaxDigits = 16;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool IsControl(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

bool IsToken(char c) {
  const char lower = static_cast<char>(c | 0x20);
  if ((lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9')) return true;
  return c != 0 && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

}  // namespace

Result<ChunkedDecoder::Step> ChunkedDecoder::Feed(std::string_view in) {
  size_t at = 0;
  while (at < in.size() && state_ != State::kDone) {
    if (state_ == State::kData) {
      const std::string_view payload = TakeData(in.substr(at));
      return Step{at + payload.size(), payload};
    }
    if (const char* problem = TakeFraming(in[at])) return Fail(Blame::kPeer, "{}", problem);
    ++at;
  }
  return Step{at, {}};
}

std::string_view ChunkedDecoder::TakeData(std::string_view in) {
  const std::string_view payload = in.substr(0, left_);
  left_ -= payload.size();
  // Small extensions on every chunk of a long body are unusual but legitimate. Only the overhead
  // without payload must be bounded.
  overhead_ -= std::min(overhead_, payload.size());
  if (left_ == 0) state_ = State::kDataCr;
  return payload;
}

const char* ChunkedDecoder::TakeFraming(char c) {
  switch (state_) {
    case State::kSize:
      return TakeSize(c);
    case State::kExtension:
      return TakeText(c, State::kSizeLf);
    case State::kSizeLf:
      return Expect(c, '\n', left_ == 0 ? State::kTrailer : State::kData);
    case State::kDataCr:
      return Expect(c, '\r', State::kDataLf);
    case State::kDataLf:
      return Expect(c, '\n', State::kSize);
    case State::kTrailer:
      return TakeTrailerStart(c);
    case State::kTrailerName:
      return TakeTrailerName(c);
    case State::kTrailerValue:
      return TakeText(c, State::kTrailerLf);
    case State::kTrailerLf:
      return Expect(c, '\n', State::kTrailer);
    case State::kEndLf:
      return Expect(c, '\n', State::kDone);
    case State::kData:
    case State::kDone:
      break;  // not framing
  }
  return "bytes after the end of the chunk framing";
}

const char* ChunkedDecoder::TakeSize(char c) {
  if (const int digit = HexDigit(c); digit >= 0) {
    if (++digits_ > kMaxDigits || left_ >> 59 != 0) return "chunk size is too large";
    left_ = left_ * 16 + static_cast<uint64_t>(digit);
    return nullptr;
  }
  if (digits_ == 0) return "chunk size is missing";
  if (c != '\r' && c != ';') return "junk after a chunk size";
  digits_ = 0;
  state_ = c == '\r' ? State::kSizeLf : State::kExtension;
  return nullptr;
}

const char* ChunkedDecoder::TakeTrailerStart(char c) {
  if (c == '\r') return Expect(c, '\r', State::kEndLf);
  state_ = State::kTrailerName;
  return c == ':' ? "invalid trailer" : TakeTrailerName(c);
}

const char* ChunkedDecoder::TakeTrailerName(char c) {
  if (c == ':') return Expect(c, ':', State::kTrailerValue);
  if (!IsToken(c)) return "invalid trailer";
  return ++overhead_ > kMaxOverhead ? "trailers are too long" : nullptr;
}

const char* ChunkedDecoder::TakeText(char c, State at_cr) {
  if (c == '\r') return Expect(c, '\r', at_cr);
  if (IsControl(c)) return "control byte in a chunk extension or trailer";
  return ++overhead_ > kMaxOverhead ? "chunk extensions or trailers are too long" : nullptr;
}

const char* ChunkedDecoder::Expect(char c, char wanted, State then) {
  if (c != wanted) return wanted == '\n' ? "CR without LF in chunk framing" : "chunk is too long";
  state_ = then;
  return nullptr;
}

ChunkPrefix::ChunkPrefix(uint64_t size) : begin_(text_.size() - kChunkSuffix.size()) {
  std::copy(kChunkSuffix.begin(), kChunkSuffix.end(), text_.begin() + begin_);
  do {
    text_[--begin_] = "0123456789abcdef"[size % 16];
    size /= 16;
  } while (size != 0);
}

}  // namespace fathom
