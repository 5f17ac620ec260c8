#include "text/tokens/token_ids.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "codec/byte_scan.h"

namespace fathom {
namespace {

constexpr ptrdiff_t kWindow = 64;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Which bytes of a window are what; the first byte is bit 0.
struct Kinds {
  uint64_t digits = 0;
  uint64_t zeros = 0;
  uint64_t commas = 0;
  uint64_t spaces = 0;

  explicit Kinds(const char* window) {
    for (int i = 0; i < kWindow; i += 16) {
      const Bytes16 bytes = Bytes16::Load(window + i);
      digits |= uint64_t{bytes.InRange('0', '9').Mask()} << i;
      zeros |= uint64_t{bytes.Equal('0').Mask()} << i;
      commas |= uint64_t{bytes.Equal(',').Mask()} << i;
      spaces |= uint64_t{bytes.Equal(' ').Mask()} << i;
    }
  }
};

// Follows windows of a list in the form that almost all have: integers, commas, and at most one
// space after a comma. In it the kind of the byte before decides whether a byte may stand where it
// does.
class PlainForm {
 public:
  bool Goes(const Kinds& now) {
    const uint64_t after_digit = now.digits << 1 | digit_;
    const uint64_t after_comma = now.commas << 1 | comma_;
    const uint64_t after_space = now.spaces << 1 | space_;
    const uint64_t starts = now.digits & ~after_digit;
    const uint64_t after_zero = (now.zeros & starts) << 1 | zero_;  // a number that ends there
    digit_ = now.digits >> 63, comma_ = now.commas >> 63, space_ = now.spaces >> 63;
    zero_ = (now.zeros & starts) >> 63;
    const uint64_t misplaced = (now.commas & ~after_digit) | (now.spaces & ~after_comma) |
                               (starts & ~(after_comma | after_space)) | (now.digits & after_zero);
    return misplaced == 0 && (now.digits | now.commas | now.spaces) == ~uint64_t{0};
  }

 private:
  // What the last byte of the window before was. At first a number is due.
  uint64_t digit_ = 0;
  uint64_t comma_ = 1;
  uint64_t space_ = 0;
  uint64_t zero_ = 0;  // and the number began with it
};

// The number whose last digit is the last of eight bytes. One of more than seven digits is not
// read: false.
bool ReadBackwards(const char* end, TokenId& id) {
  uint64_t bytes;
  std::memcpy(&bytes, end - 8, sizeof(bytes));
  // Of digits, commas and white space only digits have this bit.
  const uint64_t others = ~bytes & 0x1010101010101010u;
  if (others == 0) return false;
  const uint64_t number = ~uint64_t{0} << (64 - (std::countl_zero(others) & ~7));
  uint64_t digits = bytes & 0x0f0f0f0f0f0f0f0fu & number;
  digits = digits * 10 + (digits >> 8);  // pairs, in every second byte
  constexpr uint64_t kPairs = 0x000000ff000000ffu;
  constexpr uint64_t kFirst = 100 + (uint64_t{1000000} << 32);
  constexpr uint64_t kSecond = 1 + (uint64_t{10000} << 32);
  id = static_cast<TokenId>(((digits & kPairs) * kFirst + ((digits >> 16) & kPairs) * kSecond) >>
                            32);
  return true;
}

// Reads one array. Ids are gathered in a small room and appended from there, because the vector's
// own bookkeeping would cost more than reading a number.
class IdReader {
 public:
  IdReader(std::string_view array, std::vector<TokenId>& out, size_t limit)
      : begin_(array.data()),
        at_(array.data()),
        end_(array.data() + array.size()),
        out_(out),
        left_(limit) {}

  bool Read() {
    SkipSpace();
    if (!Take('[')) return Wrong("expected an array of token ids");
    inside_ = at_;
    SkipSpace();
    if (!Take(']') && !ReadIds()) return false;
    Flush();
    SkipSpace();
    return at_ == end_ || Wrong("unexpected bytes after the array");
  }

  size_t at() const { return static_cast<size_t>(at_ - begin_); }
  const char* problem() const { return problem_; }

 private:
  bool Wrong(const char* problem) {
    problem_ = problem;
    return false;
  }

  void SkipSpace() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  bool Take(char c) { return at_ != end_ && *at_ == c && (++at_, true); }

  // Up to and with the bracket that ends the array.
  bool ReadIds() {
    for (;;) {
      ReadPlainIds();
      SkipSpace();
      if (!ReadAnyId()) return false;
      SkipSpace();
      if (Take(']')) return true;
      if (!Take(',')) return Wrong("expected ',' or ']'");
      SkipSpace();
    }
  }

  // As many ids in the plain form as there are, window by window. Ends where an id is due, but for
  // space.
  void ReadPlainIds() {
    if constexpr (std::endian::native != std::endian::little) return;
    // Eight bytes before the first comma are looked at, and a bracket would be taken for a digit.
    if (at_ - inside_ < 8) return;
    PlainForm form;
    for (const char* window = at_; end_ - window >= kWindow; window += kWindow) {
      const Kinds kinds(window);
      if (left_ < kWindow / 2 || !form.Goes(kinds)) return;
      if (held_ > room_.size() - kWindow / 2) Flush();
      if (!ReadWindow(window, kinds.commas)) return;
    }
  }

  bool ReadWindow(const char* window, uint64_t commas) {
    TokenId* to = room_.data() + held_;
    const char* at = at_;
    bool fine = true;
    for (; commas != 0; commas &= commas - 1) {
      const char* const comma = window + std::countr_zero(commas);
      fine = ReadBackwards(comma, *to);
      if (!fine) break;
      ++to;
      at = comma + 1;
    }
    at_ = at;
    const size_t held = static_cast<size_t>(to - room_.data());
    left_ -= held - held_;
    held_ = held;
    return fine;
  }

  bool ReadAnyId() {
    const char* const first = at_;
    uint64_t value = 0;
    for (; at_ != end_ && IsDigit(*at_); ++at_) {
      value = value * 10 + static_cast<uint64_t>(*at_ - '0');
      if (value > std::numeric_limits<TokenId>::max()) return Wrong("the number is too large");
    }
    if (at_ == first) return Wrong("expected a token id");
    if (*first == '0' && at_ - first > 1) return Wrong("a number with a leading zero");
    return Add(static_cast<TokenId>(value)) || Wrong("too many token ids");
  }

  bool Add(TokenId id) {
    if (left_ == 0) return false;
    --left_;
    if (held_ == room_.size()) Flush();
    room_[held_++] = id;
    return true;
  }

  void Flush() {
    out_.insert(out_.end(), room_.data(), room_.data() + held_);
    held_ = 0;
  }

  const char* const begin_;
  const char* at_;
  const char* inside_ = nullptr;  // the first byte after the opening bracket
  const char* const end_;
  std::vector<TokenId>& out_;
  size_t left_;  // as many may still come
  size_t held_ = 0;
  const char* problem_ = nullptr;
  std::array<TokenId, 512> room_;
};

}  // namespace

Result<void> AppendTokenIds(std::string_view array, std::vector<TokenId>& out, size_t limit) {
  const size_t before = out.size();
  IdReader reader(array, out, limit);
  if (reader.Read()) return {};
  out.resize(before);
  return Fail(Blame::kCaller, "not a list of token ids, at byte {}: {}", reader.at(),
              reader.problem());
}

}  // namespace fathom
