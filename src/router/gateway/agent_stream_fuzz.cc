// What is read of a stream of /v1/messages or /v1/responses must not depend on how it is split, and
// whatever an engine sends, no part of a stream counts as complete that lacks its closing event.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "codec/sse.h"
#include "router/gateway/agent_usage.h"
#include "router/gateway/answer_screen.h"
#include "router/gateway/early_end.h"
#include "router/gateway/response_sequence.h"

namespace fathom {
namespace {

// Fed in the same way as by the relay: whole events, and at the end what is left.
class AgentStreamReader {
 public:
  explicit AgentStreamReader(AnswerForm form) : end_(form) {}

  void Feed(std::string_view piece) {
    held_ += piece;
    Take(WholeEvents(held_, torn_));
    torn_ = held_.size();
  }
  void End() { Take(held_.size()); }

  struct Reading {
    std::optional<EngineUsage> usage;
    uint64_t sequence = 0;
    size_t early = std::string_view::npos;  // where the engine ends it
    bool cut = false;

    bool operator==(const Reading&) const = default;
  };
  Reading reading() const {
    return {usage_.usage(), sequence_.next(), early_, early_ == held_.npos && end_.IsCut()};
  }

 private:
  void Take(size_t size) {
    const std::string_view events = std::string_view(held_).substr(0, size);
    if (early_ == held_.npos && end_.Mentions(events)) {
      const size_t found = end_.Find(events);
      if (found != events.npos) early_ = taken_ + found;
    }
    if (usage_.Mentions(events)) usage_.Read(events);
    sequence_.Read(events);
    taken_ += size;
    held_.erase(0, size);
    torn_ = 0;
  }

  StreamEnd end_;
  AgentUsage usage_;
  ResponseSequence sequence_;
  std::string held_;
  size_t torn_ = 0;
  size_t taken_ = 0;
  size_t early_ = std::string_view::npos;
};

AgentStreamReader::Reading ReadInPieces(AnswerForm form, std::string_view in, size_t piece) {
  AgentStreamReader reader(form);
  while (!in.empty()) {
    // A separate copy, so that a sanitizer detects reads past the end.
    const std::vector<char> now(in.begin(), in.begin() + std::min(piece, in.size()));
    reader.Feed({now.data(), now.size()});
    in.remove_prefix(now.size());
  }
  reader.End();
  return reader.reading();
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  for (const AnswerForm form : {AnswerForm::kMessages, AnswerForm::kResponses}) {
    const auto whole = ReadInPieces(form, in, std::max<size_t>(size, 1));
    for (const size_t piece : {1, 2, 17}) CHECK(ReadInPieces(form, in, piece) == whole);
    // Only what can be a closing event closes.
    const bool may_close = in.contains("message_stop") || in.contains("error") ||
                           in.contains("response.") || in.contains('\\');
    CHECK(whole.cut || whole.early != in.npos || may_close);
  }
  const Screening screened = ScreenAgentEvents(in);
  CHECK(screened != Screening::kEmptyAbort);
  return 0;
}
