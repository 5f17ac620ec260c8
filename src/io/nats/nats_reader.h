// What does a NATS server say?
//
//   NatsReader reader(longest_message);
//   for (;;) {
//     const NatsReader::Step step = reader.Take(in);
//     if (step == NatsReader::Step::kMore) break;
//     ...
//   }
//
// A line with a verb; after MSG come as many bytes as it says.
//
// Hostile bytes  Anything else is a fault, after which there is nothing but faults. Bytes that are
//                cut anywhere give the same steps.
// Memory         One line or one message. A message that is longer than `longest_message`, or has
//                headers, which we do not ask for, is passed over: whoever may publish can send
//                one, and shall not end the connection with it.
// Threads        One.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fathom {

class NatsReader {
 public:
  static constexpr size_t kLongestLine = 4 << 10;
  static constexpr size_t kLongestInfo = 64 << 10;     // its line
  static constexpr size_t kMostPassedOver = 64 << 20;  // no server accepts more

  enum class Step : uint8_t {
    kMore,  // all bytes are taken, and nothing is complete
    kInfo,
    kMessage,
    kPing,
    kPong,
    kError,
    kFault,
  };

  explicit NatsReader(size_t longest_message) : longest_message_(longest_message) {}

  // Takes bytes away from the front of `in`, until a step is complete.
  Step Take(std::string_view& in);
  // Of kInfo the JSON, of kMessage the payload, of kError the text. Valid until the next Take(), if
  // the bytes are too.
  std::string_view text() const { return text_; }

 private:
  enum class State : uint8_t { kLine, kPayload, kPassOver, kFaulty };

  Step Fault();
  std::optional<Step> TakeLine(std::string_view& in);
  std::optional<Step> TakePayload(std::string_view& in);
  std::optional<Step> PassOver(std::string_view& in);
  std::optional<Step> Understand(std::string_view line);
  std::optional<Step> BeginMessage(std::string_view arguments, bool with_headers);

  const size_t longest_message_;
  State state_ = State::kLine;
  size_t left_ = 0;        // of the message and its line end
  std::string gathered_;   // a line or a message whose end has not come yet
  bool complete_ = false;  // what is gathered
  std::string_view text_;
};

}  // namespace fathom
