// The content of a message, as a template sees it: one text, or a list of parts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codec/json.h"
#include "text/chat/chat_request.h"

namespace fathom {

struct MessageContent {
  TemplateValue value;             // with kUnknownMark for what is no text
  std::optional<Inexact> inexact;  // of the first part that is no text
  TemplateValue as_is;             // then: with the kind of the part in its place
};

// `content` is null if the message has none.
Result<MessageContent> ReadContent(const Json* content, std::string_view role,
                                   const ChatPreparation& how);

}  // namespace fathom
