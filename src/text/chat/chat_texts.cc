#include "text/chat/chat_texts.h"

#include <utility>

#include "text/chat/json_pieces.h"

namespace fathom {
namespace {

std::string Written(const Json& json) {
  std::string out;
  if (!json.is_null()) json.WriteTo(out);
  return out;
}

// Engines take the arguments of a call as a text with JSON in it.
Json WithTextArguments(const Json& call) {
  const Json* const function = call.Find("function");
  const Json* const arguments = function != nullptr ? function->Find("arguments") : nullptr;
  if (arguments == nullptr || arguments->string() != nullptr) return call;
  Json::Object inner = *function->object();
  SetIn(inner, "arguments", TextJson(Written(*arguments)));
  Json::Object out = *call.object();
  SetIn(out, "function", ObjectJson(std::move(inner)));
  return ObjectJson(std::move(out));
}

Json WithTextCalls(const Json& message) {
  const Json::Array* const calls = ListIn(message, "tool_calls");
  if (calls == nullptr) return message;
  Json::Array written;
  for (const Json& call : *calls) written.push_back(WithTextArguments(call));
  Json::Object out = *message.object();
  SetIn(out, "tool_calls", ListJson(std::move(written)));
  return ObjectJson(std::move(out));
}

}  // namespace

ChatTexts WriteChat(const ChatSource& chat) {
  ChatTexts texts;
  Json::Array messages;
  for (const Json& message : chat.messages) messages.push_back(WithTextCalls(message));
  texts.messages = Written(ListJson(std::move(messages)));
  if (chat.tools) texts.tools = Written(ListJson(*chat.tools));
  texts.tool_choice = Written(chat.tool_choice);
  if (!chat.kwargs.empty()) texts.kwargs = Written(ObjectJson(chat.kwargs));
  texts.reasoning_effort = Written(chat.reasoning_effort);
  texts.continue_final_message = chat.continue_final_message;
  return texts;
}

}  // namespace fathom
