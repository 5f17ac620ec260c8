// Whether an answer ended early must not depend on how it is split.
#include <algorithm>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "router/gateway/early_end.h"

namespace fathom {
namespace {

bool EndedEarlyInPieces(AnswerForm form, std::string_view in, size_t piece) {
  EndReader reader(form);
  while (!in.empty()) {
    // A separate copy, so that a sanitizer detects reads past the end.
    const std::vector<char> now(in.begin(), in.begin() + std::min(piece, in.size()));
    reader.Feed({now.data(), now.size()});
    in.remove_prefix(now.size());
  }
  return reader.ended_early();
}

// What is not mentioned may be left out.
void CheckStream(AnswerForm form, std::string_view in) {
  StreamEnd end(form);
  const size_t found = end.Find(in);
  CHECK(found == in.npos || found < in.size());
  CHECK(found == in.npos || StreamEnd(form).Mentions(in));
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  for (const AnswerForm form :
       {AnswerForm::kCompletion, AnswerForm::kMessages, AnswerForm::kResponses}) {
    const bool whole = EndedEarlyInPieces(form, in, std::max<size_t>(size, 1));
    for (const size_t piece : {1, 2, 17}) CHECK(EndedEarlyInPieces(form, in, piece) == whole);
    CheckStream(form, in);
  }
  return 0;
}
