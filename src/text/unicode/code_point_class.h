// What kind of character is this code point? The properties that tokenizers ask for, as bits.
//
// Memory   One table for the process, about 250 KiB, made at its first use.
// Threads  The table never changes.
// Staleness  Unicode 16 (late_code_points.h), or that of utf8proc if it is later. What a later
//            version assigned has no bits.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "text/unicode/utf8.h"

namespace fathom {

using CodePointClass = uint16_t;

constexpr CodePointClass kUpperLetter = 1;  // Lu, Lt
constexpr CodePointClass kLowerLetter = 2;  // Ll
constexpr CodePointClass kOtherLetter = 4;  // Lm, Lo
constexpr CodePointClass kLetter = kUpperLetter | kLowerLetter | kOtherLetter;
constexpr CodePointClass kMark = 8;
constexpr CodePointClass kNumber = 16;
constexpr CodePointClass kSpace = 32;  // White_Space
constexpr CodePointClass kPunctuation = 64;
constexpr CodePointClass kSymbol = 128;
constexpr CodePointClass kWordPart = 256;  // \w: Alphabetic, M, Nd, Pc, Join_Control
// NFC leaves it as it is, whatever stands before it. Text of such code points is in NFC.
constexpr CodePointClass kInertInNfc = 512;
// NFC leaves it as it is among marks in canonical order: it is inert, or a mark that joins nothing.
constexpr CodePointClass kSteadyInNfc = 1024;

class CodePointClasses {
 public:
  static const CodePointClasses& Table();

  // kNotUtf8 has no bits.
  CodePointClass operator[](uint32_t code_point) const {
    if (code_point > kMaxCodePoint) return 0;
    return blocks_[block_of_[code_point >> kShift] + (code_point & (kBlock - 1))];
  }

 private:
  static constexpr uint32_t kShift = 7;
  static constexpr uint32_t kBlock = 1 << kShift;

  CodePointClasses();

  std::array<uint32_t, ((kMaxCodePoint + 1) >> kShift)> block_of_;
  std::vector<CodePointClass> blocks_;  // equal ones are kept once
};

}  // namespace fathom
