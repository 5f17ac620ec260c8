#include "text/chat/chat_request.h"

#include <utility>

#include "codec/json_as_python.h"
#include "text/chat/developer_messages.h"
#include "text/chat/message_content.h"

namespace fathom {
namespace {

const std::string* StringIn(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  return member != nullptr ? member->string() : nullptr;
}

// Roles are ASCII.
std::string Lowered(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return text;
}

class ChatReader {
 public:
  explicit ChatReader(const ChatPreparation& how) : how_(how), rules_(RulesOf(how.dialect)) {}

  Result<void> Add(const Json& message) {
    const std::string* const given = StringIn(message, "role");
    if (given == nullptr) return Fail(Blame::kCaller, "a message has no role");
    const std::string role = rules_.lowers_roles ? Lowered(*given) : *given;
    TRY(MessageContent content, ReadContent(message.Find("content"), role, how_));
    if (content.inexact && !chat_.inexact) chat_.inexact = content.inexact;
    const bool differs = !content.as_is.is_undefined();
    if (differs && !chat_.as_is) chat_.as_is = chat_.messages;
    if (chat_.as_is) {
      TRY(TemplateValue shown, Shown(message, role, differs ? content.as_is : content.value));
      chat_.as_is->push_back(std::move(shown));
    }
    TRY(TemplateValue shown, Shown(message, role, std::move(content.value)));
    chat_.messages.push_back(std::move(shown));
    return {};
  }

  PreparedChat Take() && { return std::move(chat_); }

 private:
  Result<TemplateValue> Shown(const Json& message, std::string_view role,
                              TemplateValue content) const {
    TemplateDict out;
    out.emplace_back("role", TemplateValue(role));
    out.emplace_back("content", std::move(content));
    TRY_VOID(rules_.add_members(message, role, out));
    return out;
  }

  const ChatPreparation& how_;
  const ChatRules& rules_;
  PreparedChat chat_;
};

// The name in {"type": "function", "function": {"name": ...}}.
const std::string* NamedTool(const Json& choice) {
  const Json* const function = choice.Find("function");
  return function != nullptr ? StringIn(*function, "name") : nullptr;
}

bool IsWord(const Json& value, std::string_view word) {
  return value.string() != nullptr && *value.string() == word;
}

TemplateValue ToolsOf(const ChatSource& chat, const ChatRules& rules) {
  if (!chat.tools) return nullptr;
  if (rules.no_tools_if_none && IsWord(chat.tool_choice, "none")) return nullptr;
  if (chat.tools->empty() && !rules.empty_tools_stay) return nullptr;
  const std::string* const wanted = rules.only_named_tool ? NamedTool(chat.tool_choice) : nullptr;
  TemplateList out;
  for (const Json& tool : *chat.tools) {
    const std::string* const name = NamedTool(tool);
    if (wanted != nullptr && (name == nullptr || *name != *wanted)) continue;
    out.push_back(rules.tool(tool));
  }
  return TemplateValue(std::move(out));
}

// A final message of the assistant is the beginning of its next one, or something that the user
// says.
void TurnFinalMessage(const ChatSource& chat, PreparedChat& prepared) {
  const TemplateDict& last = *prepared.messages.back().dict();
  const std::string* const role = FindMember(last, "role")->text();
  const std::string* const content = FindMember(last, "content")->text();
  if (*role != "assistant" || content == nullptr) return;
  const std::string text = *content;
  if (chat.continue_final_message) {
    prepared.messages.pop_back();
    prepared.beginning = text;
  } else {
    prepared.messages.back() =
        TemplateDict{{"role", TemplateValue("user")}, {"content", TemplateValue(text)}};
  }
  // The messages as they are with images in them do not end here.
  if (prepared.as_is) prepared.as_is->pop_back();
}

}  // namespace

Result<Json> ReadRequestJson(std::string_view text) {
  if (text.empty()) return Json();
  auto json = JsonAsPython(text);
  if (json) return *std::move(json);
  return Fail(Blame::kCaller, "{}",
              json.error() == PythonJsonFault::kNotJson
                  ? "a member of the request is not JSON"
                  : "a member of the request has values that are not "
                    "supported");
}

Result<Json::Array> ReadRequestList(std::string_view text, std::string_view name) {
  TRY(Json json, ReadRequestJson(text));
  if (json.array() == nullptr) return Fail(Blame::kCaller, "'{}' is not a list", name);
  return std::get<Json::Array>(std::move(json).Take());
}

Result<Json::Object> ReadKwargs(std::string_view text) {
  constexpr size_t kMostKwargs = 256;  // no template knows so many names
  TRY(Json kwargs, ReadRequestJson(text));
  if (kwargs.is_null()) return Json::Object();
  if (kwargs.object() == nullptr || kwargs.object()->size() > kMostKwargs) {
    return Fail(Blame::kCaller, "'chat_template_kwargs' is not an object of at most {} members",
                kMostKwargs);
  }
  return std::get<Json::Object>(std::move(kwargs).Take());
}

Result<ChatSource> ReadChat(const ChatFields& chat) {
  ChatSource source;
  TRY(source.messages, ReadRequestList(chat.messages, "messages"));
  if (!chat.tools.empty()) {
    TRY(source.tools, ReadRequestList(chat.tools, "tools"));
  }
  TRY(source.tool_choice, ReadRequestJson(chat.tool_choice));
  TRY(source.documents, ReadRequestJson(chat.documents));
  TRY(source.reasoning_effort, ReadRequestJson(chat.reasoning_effort));
  TRY(source.kwargs, ReadKwargs(chat.chat_template_kwargs));
  if (!chat.add_generation_prompt.empty()) {
    source.add_generation_prompt = chat.add_generation_prompt == "true";
  }
  source.continue_final_message = chat.continue_final_message == "true";
  return source;
}

Result<PreparedChat> PrepareChat(const ChatSource& chat, const ChatPreparation& how) {
  if (chat.messages.empty()) return Fail(Blame::kCaller, "there are no messages");
  ChatReader reader(how);
  for (const Json& message : chat.messages) TRY_VOID(reader.Add(message));
  PreparedChat prepared = std::move(reader).Take();
  const ChatRules& rules = RulesOf(how.dialect);
  prepared.tools = ToolsOf(chat, rules);
  if (rules.folds_developer && !how.knows_developer) {
    FoldDeveloper(prepared.messages);
    if (prepared.as_is) FoldDeveloper(*prepared.as_is);
  }
  if (rules.final_assistant_becomes_user) TurnFinalMessage(chat, prepared);
  return prepared;
}

}  // namespace fathom
