// Code points that Unicode 15 and 16 have assigned: the expression engines of model servers know
// them, and the utf8proc of a stable distribution does not yet.
//
// To make it anew: ask Oniguruma for the categories of what utf8proc calls unassigned.
#pragma once

#include <cstdint>

#include "text/unicode/code_point_class.h"

namespace fathom {

struct LateCodePoints {
  uint32_t first;
  uint32_t last;
  CodePointClass bits;
};

constexpr LateCodePoints kLateCodePoints[] = {
    {0x897, 0x897, kMark | kWordPart},
    {0x1b4e, 0x1b4f, kPunctuation},
    {0x1b7f, 0x1b7f, kPunctuation},
    {0x1c89, 0x1c89, kUpperLetter | kWordPart},
    {0x1c8a, 0x1c8a, kLowerLetter | kWordPart},
    {0x2427, 0x2429, kSymbol},
    {0x2ffc, 0x2fff, kSymbol},
    {0x31e4, 0x31e5, kSymbol},
    {0x31ef, 0x31ef, kSymbol},
    {0xa7cb, 0xa7cc, kUpperLetter | kWordPart},
    {0xa7cd, 0xa7cd, kLowerLetter | kWordPart},
    {0xa7da, 0xa7da, kUpperLetter | kWordPart},
    {0xa7db, 0xa7db, kLowerLetter | kWordPart},
    {0xa7dc, 0xa7dc, kUpperLetter | kWordPart},
    {0x105c0, 0x105f3, kOtherLetter | kWordPart},
    {0x10d40, 0x10d49, kNumber | kWordPart},
    {0x10d4a, 0x10d4f, kOtherLetter | kWordPart},
    {0x10d50, 0x10d65, kUpperLetter | kWordPart},
    {0x10d69, 0x10d6d, kMark | kWordPart},
    {0x10d6e, 0x10d6e, kPunctuation},
    {0x10d6f, 0x10d6f, kOtherLetter | kWordPart},
    {0x10d70, 0x10d85, kLowerLetter | kWordPart},
    {0x10d8e, 0x10d8f, kSymbol},
    {0x10ec2, 0x10ec4, kOtherLetter | kWordPart},
    {0x10efc, 0x10efc, kMark | kWordPart},
    {0x11380, 0x11389, kOtherLetter | kWordPart},
    {0x1138b, 0x1138b, kOtherLetter | kWordPart},
    {0x1138e, 0x1138e, kOtherLetter | kWordPart},
    {0x11390, 0x113b5, kOtherLetter | kWordPart},
    {0x113b7, 0x113b7, kOtherLetter | kWordPart},
    {0x113b8, 0x113c0, kMark | kWordPart},
    {0x113c2, 0x113c2, kMark | kWordPart},
    {0x113c5, 0x113c5, kMark | kWordPart},
    {0x113c7, 0x113ca, kMark | kWordPart},
    {0x113cc, 0x113d0, kMark | kWordPart},
    {0x113d1, 0x113d1, kOtherLetter | kWordPart},
    {0x113d2, 0x113d2, kMark | kWordPart},
    {0x113d3, 0x113d3, kOtherLetter | kWordPart},
    {0x113d4, 0x113d5, kPunctuation},
    {0x113d7, 0x113d8, kPunctuation},
    {0x113e1, 0x113e2, kMark | kWordPart},
    {0x116d0, 0x116e3, kNumber | kWordPart},
    {0x11bc0, 0x11be0, kOtherLetter | kWordPart},
    {0x11be1, 0x11be1, kPunctuation},
    {0x11bf0, 0x11bf9, kNumber | kWordPart},
    {0x11f5a, 0x11f5a, kMark | kWordPart},
    {0x13460, 0x143fa, kOtherLetter | kWordPart},
    {0x16100, 0x1611d, kOtherLetter | kWordPart},
    {0x1611e, 0x1612f, kMark | kWordPart},
    {0x16130, 0x16139, kNumber | kWordPart},
    {0x16d40, 0x16d6c, kOtherLetter | kWordPart},
    {0x16d6d, 0x16d6f, kPunctuation},
    {0x16d70, 0x16d79, kNumber | kWordPart},
    {0x18cff, 0x18cff, kOtherLetter | kWordPart},
    {0x1cc00, 0x1ccef, kSymbol},
    {0x1ccf0, 0x1ccf9, kNumber | kWordPart},
    {0x1cd00, 0x1ceb3, kSymbol},
    {0x1e5d0, 0x1e5ed, kOtherLetter | kWordPart},
    {0x1e5ee, 0x1e5ef, kMark | kWordPart},
    {0x1e5f0, 0x1e5f0, kOtherLetter | kWordPart},
    {0x1e5f1, 0x1e5fa, kNumber | kWordPart},
    {0x1e5ff, 0x1e5ff, kPunctuation},
    {0x1f8b2, 0x1f8bb, kSymbol},
    {0x1f8c0, 0x1f8c1, kSymbol},
    {0x1fa89, 0x1fa89, kSymbol},
    {0x1fa8f, 0x1fa8f, kSymbol},
    {0x1fabe, 0x1fabe, kSymbol},
    {0x1fac6, 0x1fac6, kSymbol},
    {0x1fadc, 0x1fadc, kSymbol},
    {0x1fadf, 0x1fadf, kSymbol},
    {0x1fae9, 0x1fae9, kSymbol},
    {0x1fbcb, 0x1fbef, kSymbol},
    {0x2ebf0, 0x2ee5d, kOtherLetter | kWordPart},
};

}  // namespace fathom
