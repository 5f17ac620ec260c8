// Where is the next byte that matters? Sixteen bytes at a time.
//
// Memory  Nothing is read outside [from, end).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "codec/bytes16.h"

namespace fathom {

// The first byte in [from, end) for which `one` is true, or end. `many` is the same test for
// sixteen bytes.
template <class Many, class One>
inline const char* FindByte(const char* from, const char* end, Many many, One one) {
  for (; end - from >= 16; from += 16) {
    const uint32_t found = many(Bytes16::Load(from)).Mask();
    if (found != 0) return from + std::countr_zero(found);
  }
  while (from != end && !one(static_cast<unsigned char>(*from))) ++from;
  return from;
}

// CR or LF.
inline const char* FindLineEnd(const char* from, const char* end) {
  return FindByte(
      from, end, [](Bytes16 b) { return b.Equal('\r') | b.Equal('\n'); },
      [](unsigned char c) { return c == '\r' || c == '\n'; });
}

// A byte that is not a letter, digit or dash: the end of almost every header name, although a name
// may contain some of these.
inline const char* FindNameEnd(const char* from, const char* end) {
  return FindByte(
      from, end,
      [](Bytes16 b) {
        return ~(b.InRange('a', 'z') | b.InRange('A', 'Z') | b.InRange('0', '9') | b.Equal('-'));
      },
      [](unsigned char c) {
        const unsigned char lower = c | 0x20;
        return !((lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '-');
      });
}

// A byte that is not allowed in a header value: control bytes except the tab.
inline const char* FindControl(const char* from, const char* end) {
  return FindByte(
      from, end, [](Bytes16 b) { return b.InRange(0, 0x1f).AndNot(b.Equal('\t')) | b.Equal(0x7f); },
      [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
}

// A byte with a meaning inside a JSON string: the quote, the backslash, control bytes.
inline const char* FindStringByte(const char* from, const char* end) {
  return FindByte(
      from, end, [](Bytes16 b) { return b.Equal('"') | b.Equal('\\') | b.InRange(0, 0x1f); },
      [](unsigned char c) { return c == '"' || c == '\\' || c < 0x20; });
}

}  // namespace fathom
