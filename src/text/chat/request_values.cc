#include "text/chat/request_values.h"

#include <algorithm>
#include <string_view>

namespace fathom {

Result<void> CheckValues(const ChatFields& chat) {
  const auto texts = {
      chat.messages, chat.tools,    chat.tool_choice,   chat.documents, chat.chat_template_kwargs,
      chat.system,   chat.thinking, chat.output_config, chat.input,     chat.reasoning};
  size_t bytes = 0;
  for (const std::string_view text : texts) bytes += text.size();
  if (bytes / 2 < kMostRequestValues) return {};  // as nearly every request
  // Each value but the first stands behind one of these.
  const auto leads = [](char c) { return c == ',' || c == '[' || c == '{'; };
  size_t values = 0;
  for (const std::string_view text : texts) {
    values += static_cast<size_t>(std::ranges::count_if(text, leads));
  }
  if (values < kMostRequestValues) return {};
  return Fail(Blame::kCaller, "the request may have more than {} JSON values", kMostRequestValues);
}

}  // namespace fathom
