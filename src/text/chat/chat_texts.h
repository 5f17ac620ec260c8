// A chat that came by another API, as a client of /v1/chat/completions would have written it: for
// an engine's /tokenize, which knows no other form.
#pragma once

#include <string>

#include "text/chat/chat_request.h"

namespace fathom {

// JSON values, empty where there is none.
struct ChatTexts {
  std::string messages;
  std::string tools;
  std::string tool_choice;
  std::string kwargs;
  std::string reasoning_effort;
  bool continue_final_message = false;
};

ChatTexts WriteChat(const ChatSource& chat);

}  // namespace fathom
