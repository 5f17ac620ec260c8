// Did the engine end this answer before it was complete?
//
// A stream of messages or responses that is complete has a closing event: message_stop;
// response.completed, .incomplete, .failed or .cancelled; or an error. One that ends without it is
// cut off, however its body was framed.
//
// An engine that is stopped ends what it is generating: status 200, well-formed, with a part of the
// text, and marked only in one member:
//
//   completions   finish_reason "abort" of a choice; SGLang (and its /generate) also
//   {"type":"abort"}, except with a
//                 status_code of 4xx: then the request was at fault
//   messages      no stop_reason: null, missing or "abort" in the message, or in all of a stream
//   responses     status "cancelled", or incomplete because of "abort"; not in the background,
//   where
//                 the client itself may have cancelled it
//
// Bytes that only look like this inside a text are not mistaken for it.
//
// Memory  Little, whatever the length of the answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "codec/json_leaves.h"

namespace fathom {

class SseEvent;

// The shape of an answer.
enum class AnswerForm : uint8_t { kOther, kCompletion, kMessages, kResponses, kGenerate };

// One JSON object of an answer: a whole answer, or the data of one event of a stream.
class EndReader final : public JsonLeaves {
 public:
  explicit EndReader(AnswerForm form) : form_(form) {}

  // After a whole answer.
  bool ended_early() const;

  // After an event. The last one of a stream of messages shows an early end only by what came
  // before it.
  bool aborted() const;
  bool gives_stop_reason() const { return stop_reason_; }
  bool is_message_stop() const { return type_ == Type::kMessageStop; }
  bool closes() const { return type_ > Type::kMessage; }

 private:
  enum class Type : uint8_t {
    kOther,
    kMessage,
    kMessageStop,
    kError,
    kResponseCancelled,
    kResponseEnd,  // in any other way
  };

  void OnLeaf(std::string_view value) override;
  void OnCompletionLeaf(std::string_view value);
  void OnMessageLeaf(std::string_view value);
  void OnResponseLeaf(std::string_view value);
  void ReadType(std::string_view value);

  const AnswerForm form_;
  Type type_ = Type::kOther;
  bool aborted_ = false;
  bool excused_ = false;      // by the request itself
  bool stop_reason_ = false;  // other than "abort"
};

// The events of a stream, one after the other.
class StreamEnd {
 public:
  explicit StreamEnd(AnswerForm form) : form_(form) {}

  // Whether Find() must see these bytes, which are whole events. A quick search.
  bool Mentions(std::string_view events) const;

  // Where the event begins by which the engine ends the answer early; npos: none does. Every event
  // that Mentions() is true for must be passed once, in order.
  size_t Find(std::string_view events);

  // If the stream ends here: without its closing event. (Its last event may lack its blank line.)
  bool IsCut() const;

 private:
  bool EndsEarly(const SseEvent& event);

  const AnswerForm form_;
  bool closed_ = false;
  bool stop_reason_ = false;  // of a stream of messages
};

}  // namespace fathom
