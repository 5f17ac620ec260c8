// Relays one worker's answer to the client as it arrives.
//
// First byte     The head is held back until a byte of the body may be sent, so that a silent,
//                broken or empty answer can still be retried on another worker.
// Back-pressure  One buffer. The worker is not read again before the client has taken its content.
// Streams        Only whole events are sent, so that a broken stream can be ended with an error
//                event: never a partial event, never a truncation that looks complete. A stream of
//                /v1/messages or /v1/responses that ends without its closing event is a broken one.
// Early ends     An answer that the engine ends early, with status 200, is not passed on as
// complete.
//                One that is not streamed is held for that until it is complete, up to a limit.
// Usage          Read from the passing bytes; removed again if only the router had asked for it.
// Cost           One read and one write per piece that the worker sends. Bodies are not copied,
//                except the few events that contain usage.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/request_memory.h"
#include "base/text_builder.h"
#include "codec/json_member.h"
#include "io/http/client_connection.h"
#include "io/http/server_connection.h"
#include "router/gateway/agent_usage.h"
#include "router/gateway/answer_screen.h"
#include "router/gateway/early_end.h"
#include "router/gateway/gateway_metrics.h"
#include "router/gateway/response_id.h"
#include "router/gateway/response_sequence.h"
#include "router/gateway/selection.h"
#include "router/gateway/usage_filter.h"

namespace fathom {

class AnswerRelay {
 public:
  struct Patience {
    Duration first_byte;
    Duration idle;
    TimePoint give_up_at;
  };
  // Only a completion, and the stream of an agent's API, is checked for an empty answer.
  enum class Kind : uint8_t { kCompletion, kOther };
  enum class End : uint8_t {
    kComplete,
    kClientLeft,
    kWorkerFailed,  // see sent_anything(): before the first byte it can be retried
    kEndedEarly,    // by the engine, with a part of the text; likewise
    kEmptyAbort,    // nothing was sent
  };

  // Whether the engine ends the answer early.
  struct Watch {
    AnswerForm form;
    size_t held_bytes;  // of an answer that is not streamed; 0: it is neither held nor watched
    RequestMemory& memory;
    bool reads_id = false;  // of the response, which may be continued
  };

  // The worker's head has already been read and parsed.
  AnswerRelay(ServerConnection& client, ClientConnection& worker, GatewayMetrics& metrics,
              Selection& selection, const Patience& patience, Kind kind, const UsageWish& usage,
              const Watch& watch);

  // `extra_headers` are complete lines, added to the worker's headers.
  Task<End> Run(std::string_view extra_headers);

  // After kWorkerFailed and kEndedEarly, if something was sent: ends the answer so that the client
  // sees it as broken.
  Task<void> BreakOff(int status, std::string_view code, std::string_view message);

  bool sent_anything() const { return head_sent_; }
  uint64_t bytes() const { return bytes_; }
  TimePoint last_progress() const { return last_progress_; }
  IoStatus failure() const { return failure_; }
  // The worker has ended the stream regularly, but without its closing event.
  bool cut() const { return cut_; }
  // The usage filter of a stream of completions; null if the answer is none, or its usage is not
  // read.
  const UsageFilter* stream_usage() const {
    return reads_ && events_ && !agents_ ? &filter_ : nullptr;
  }

 private:
  static constexpr size_t kMaxPieces = 16;

  void BuildHead(std::string_view extra_headers);
  bool Decode();
  void Hold();
  Screening Screen();
  bool PiecesPass();
  bool HasUsage(std::string_view events);
  bool HoldsOn() const;
  void PrepareOutput();
  bool EndedEarlyWhole() const;
  void StopAtEarlyEnd();
  bool StopAtCut();
  bool LacksEnd() const;
  size_t Gather(std::array<iovec, kMaxPieces + 4>& parts, const ChunkPrefix& prefix);
  void Account(TimePoint now);
  void TellUsage();
  void TellId();
  Screening Examine();
  TimePoint ReadDeadline() const;

  ServerConnection& client_;
  ClientConnection& worker_;
  GatewayMetrics& metrics_;
  Selection& selection_;  // is notified of the progress
  const Patience patience_;
  const Kind kind_;
  const bool events_;        // a text/event-stream
  const bool agents_;        // an answer of /v1/messages, /v1/responses or /generate
  const bool reads_;         // usage is read
  const bool takes_out_;     // usage is removed
  bool seeks_id_;            // the id of the response is read, and is not known yet
  const bool keeps_length_;  // the worker's content-length is passed on
  const AnswerForm form_;
  const bool watches_;  // for an early end
  const size_t held_bytes_;
  RequestMemory::Share memory_;
  bool holds_;        // an answer that is not a stream is held until it is complete
  bool chunked_out_;  // else framed by the worker's length, or by the end of the connection

  TextBuilder head_;
  std::array<std::string_view, kMaxPieces> pieces_;  // body bytes, in the worker's buffer
  size_t piece_count_ = 0;
  size_t decoded_ = 0;       // bytes of that buffer which the pieces came from
  UsageFilter filter_;       // for a stream of completions
  AgentUsage agent_usage_;   // for a stream of the other APIs
  JsonMemberFinder finder_;  // for an answer that is not a stream
  ResponseIdReader id_;
  bool told_usage_ = false;
  StreamEnd stream_end_;  // for a stream
  EndReader end_;         // for an answer that is not a stream
  bool ended_early_ = false;
  bool cut_ = false;
  bool part_sent_ = false;     // of an event that was too long to be held
  bool read_all_ = true;       // no such event so far
  ResponseSequence sequence_;  // of a stream of responses
  std::string held_;           // body bytes that could not be sent when they arrived
  size_t torn_ = 0;            // leading bytes of held_ in which no event ends
  size_t showable_ = 0;        // bytes of held_ to send, if held_ is sent
  bool direct_ = true;         // the pieces are sent unchanged
  size_t sending_ = 0;         // body bytes being sent now
  bool done_ = false;          // the body is complete
  bool head_sent_ = false;
  uint64_t bytes_ = 0;
  TimePoint last_progress_;
  IoStatus failure_ = IoStatus::kOk;
};

}  // namespace fathom
