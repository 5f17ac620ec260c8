// Bodies for /v1/messages and /v1/responses: whatever they contain, they are read or refused, and
// what was read can be prepared for a template.
#include <cstdint>
#include <string_view>

#include "text/chat/messages_request.h"
#include "text/chat/responses_request.h"

using namespace fathom;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto dialect = static_cast<ChatDialect>(data[0] % 3);
  EngineHabits habits;
  habits.takes_inline_system = (data[1] & 1) != 0;
  if ((data[1] & 2) != 0) habits.thoughts = MarksOfParser("qwen3");
  habits.thinking_argument = "enable_thinking";
  // Two members, apart by a zero: what a scan of the body would have found.
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t cut = rest.find('\0');
  const std::string_view first = rest.substr(0, cut);
  const std::string_view second =
      cut == std::string_view::npos ? std::string_view() : rest.substr(cut + 1);
  const ChatPreparation how{.dialect = dialect, .content_in_parts = (data[1] & 4) != 0};
  for (const ChatFields& fields :
       {ChatFields{.messages = first, .tools = second},
        ChatFields{.messages = first, .system = second},
        ChatFields{.messages = first, .thinking = second, .output_config = second}}) {
    if (const auto source = ReadMessages(fields, dialect, habits)) (void)PrepareChat(*source, how);
  }
  for (const ChatFields& fields :
       {ChatFields{.tools = second, .input = first},
        ChatFields{.input = first, .instructions = second},
        ChatFields{.tool_choice = second, .input = first, .reasoning = second}}) {
    if (const auto source = ReadResponses(fields, dialect, habits)) (void)PrepareChat(*source, how);
  }
  return 0;
}
