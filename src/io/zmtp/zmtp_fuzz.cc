// Any bytes of a peer, cut anywhere, give the same messages, commands and faults, and memory stays
// within the limits.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/check.h"
#include "io/zmtp/zmtp_decoder.h"
#include "io/zmtp/zmtp_handshake.h"

namespace fathom {
namespace {

constexpr ZmtpLimits kLimits{.frames = 20, .message = 300'000, .command = 64};
constexpr size_t kMemory = 400'000;

// What a peer's bytes amount to, as text.
class Conversation {
 public:
  explicit Conversation(bool keyed) : handshake_(ZmtpType::kSub, keyed ? "key" : "") {}

  void Take(std::string_view in) {
    if (!shaken_) {
      const auto step = handshake_.Take(in, said_);
      if (step == ZmtpHandshake::Step::kFault) ended_ = true;
      shaken_ = step == ZmtpHandshake::Step::kDone;
    }
    while (shaken_ && !ended_) {
      const auto step = decoder_.Take(in);
      CHECK(budget_.used() <= kMemory);
      if (step == ZmtpDecoder::Step::kMore) break;
      Note(step);
    }
  }

  std::string Summary() const {
    return said_ + "|" + std::to_string(static_cast<int>(handshake_.fault())) + "|" +
           std::to_string(static_cast<int>(decoder_.fault()));
  }

 private:
  void Note(ZmtpDecoder::Step step) {
    ended_ = step == ZmtpDecoder::Step::kFault;
    if (step == ZmtpDecoder::Step::kCommand) {
      CHECK(decoder_.command().size() <= kLimits.command);
      const auto command = ReadZmtpCommand(decoder_.command());
      said_ += command ? std::string(command->name) : "?";
    }
    if (step != ZmtpDecoder::Step::kMessage) return;
    size_t bytes = 0;
    for (const std::string& frame : decoder_.message()) bytes += frame.size();
    CHECK(bytes <= kLimits.message && decoder_.message().size() <= ZmqMessage::kMostFrames);
    for (const std::string& frame : decoder_.message()) said_ += frame + ",";
  }

  ZmtpHandshake handshake_;
  ByteBudget budget_{kMemory};
  ByteHolder holder_{budget_};
  ZmtpDecoder decoder_{kLimits, &holder_};
  std::string said_;
  bool shaken_ = false;
  bool ended_ = false;
};

}  // namespace
}  // namespace fathom

// The first byte says whether a key is wanted, and where the bytes are cut.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  if (size == 0) return 0;
  const bool keyed = (data[0] & 1) != 0;
  const size_t piece = 1 + (data[0] >> 1);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Conversation whole(keyed);
  whole.Take(bytes);
  Conversation pieces(keyed);
  for (size_t at = 0; at < bytes.size(); at += piece) pieces.Take(bytes.substr(at, piece));
  CHECK(whole.Summary() == pieces.Summary());
  return 0;
}
