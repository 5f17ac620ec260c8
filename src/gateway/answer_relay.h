// Passes one worker's answer on to the client, as it comes.
//
// First byte     The head is held back until there is a byte of body that is worth showing, so that
//                a silent, broken or empty answer can still be had from somebody else.
// Back-pressure  One buffer. The worker is not read again before the client took what there is.
// Streams        Events are passed on whole, so that a stream that breaks can be ended with an
//                error event: never a torn event, never a truncation that looks complete.
// Usage          Read from what passes by; taken out again where only the router had asked for it.
// Cost           One read and one write per piece that the worker sends; bodies are not copied,
//                but for the few events that tell usage.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text_builder.h"
#include "codec/json_member.h"
#include "gateway/answer_screen.h"
#include "gateway/gateway_metrics.h"
#include "gateway/usage_filter.h"
#include "http/client_connection.h"
#include "http/server_connection.h"

namespace fathom {

// Whoever wants to know how an answer comes along.
class AnswerWatcher {
 public:
  virtual ~AnswerWatcher() = default;
  // The first byte of its body is there.
  virtual void OnFirstByte(int status) = 0;
  // Another piece of a stream.
  virtual void OnPiece() = 0;
  // What the engine says about the prompt; at most once, after the first byte.
  virtual void OnUsage(const EngineUsage& usage) = 0;
};

class AnswerRelay {
 public:
  struct Patience {
    Duration first_byte;
    Duration idle;
    TimePoint give_up_at;
  };
  // Whether the answer can be a completion, and so one with nothing in it.
  enum class Kind : uint8_t { kCompletion, kOther };
  enum class End : uint8_t {
    kComplete,
    kClientLeft,
    kWorkerFailed,  // see sent_anything(): before the first byte it can be retried
    kEmptyAbort,    // nothing was sent
  };

  // The worker's head has been read and parsed.
  AnswerRelay(ServerConnection& client, ClientConnection& worker, GatewayMetrics& metrics,
              AnswerWatcher& watcher, const Patience& patience, Kind kind, const UsageWish& usage);

  // `extra_headers` are whole lines, added to those of the worker.
  Task<End> Run(std::string_view extra_headers);

  // After kWorkerFailed, when something was sent: ends the answer so that nobody takes it for
  // whole.
  Task<void> BreakOff();

  bool sent_anything() const { return head_sent_; }
  uint64_t bytes() const { return bytes_; }
  TimePoint last_progress() const { return last_progress_; }
  IoStatus failure() const { return failure_; }
  // What was seen of a stream; null if the answer was none, or could not be read.
  const UsageFilter* stream_usage() const { return reads_ && events_ ? &filter_ : nullptr; }

 private:
  static constexpr size_t kMaxPieces = 16;

  void BuildHead(std::string_view extra_headers);
  bool Decode();
  void Hold();
  Screening Screen();
  bool PiecesPass();
  void ChooseOutput();
  size_t Gather(std::array<iovec, kMaxPieces + 4>& parts, const ChunkPrefix& prefix);
  void Account(TimePoint now);
  void TellUsage();
  Screening Examine();
  TimePoint ReadDeadline() const;

  ServerConnection& client_;
  ClientConnection& worker_;
  GatewayMetrics& metrics_;
  AnswerWatcher& watcher_;
  const Patience patience_;
  const Kind kind_;
  const bool events_;        // a text/event-stream
  const bool reads_;         // what it says about usage
  const bool takes_out_;     // what it says about usage
  const bool keeps_length_;  // that the worker gave it
  bool chunked_out_;  // framed by us; else by the worker's length, or by the end of the connection

  TextBuilder head_;
  std::array<std::string_view, kMaxPieces> pieces_;  // body bytes, in the worker's buffer
  size_t piece_count_ = 0;
  size_t decoded_ = 0;       // bytes of that buffer they came from
  UsageFilter filter_;       // of a stream
  JsonMemberFinder finder_;  // in a whole answer
  bool told_usage_ = false;
  std::string held_;     // body bytes that could not be shown when they came
  size_t torn_ = 0;      // of held_, from its beginning: no event ends in them
  size_t showable_ = 0;  // of held_, when that is what goes out
  bool direct_ = true;   // the pieces go out as they are
  size_t sending_ = 0;   // body bytes that go out now
  bool done_ = false;    // the body is complete
  bool head_sent_ = false;
  uint64_t bytes_ = 0;
  TimePoint last_progress_;
  IoStatus failure_ = IoStatus::kOk;
};

}  // namespace fathom
