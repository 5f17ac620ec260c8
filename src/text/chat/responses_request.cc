#include "text/chat/responses_request.h"

#include <algorithm>
#include <string>
#include <utility>

#include "codec/json_as_python.h"
#include "text/chat/json_pieces.h"
#include "text/chat/request_values.h"

namespace fathom {
namespace {

std::unexpected<Error> UnknownItem() {
  return Fail(Blame::kCaller, "the input has an item that the engine does not know");
}

// A tool that takes a text is shown as one that takes an object with this member.
constexpr std::string_view kCustomInput = "input";

Json CustomArguments(const Json& item) {
  return ObjectJson({{std::string(kCustomInput), TextJson(TextIn(item, "input"))}});
}

Json CustomSchema(ChatDialect dialect) {
  const bool trtllm = dialect == ChatDialect::kTrtllm;
  Json::Object schema = {
      {"type", TextJson("object")},
      {"properties",
       ObjectJson(
           {{std::string(kCustomInput),
             ObjectJson({{"type", TextJson("string")},
                         {"description",
                          TextJson(trtllm ? "The complete freeform input for this tool, "
                                            "passed through verbatim."
                                          : "The freeform text payload for this tool.")}})}})},
      {"required", ListJson({TextJson(kCustomInput)})}};
  if (!trtllm) schema.emplace_back("additionalProperties", Json(Json::Value(false)));
  return ObjectJson(std::move(schema));
}

bool IsOutput(std::string_view type) {
  return type == "function_call_output" || type == "custom_tool_call_output";
}

bool IsAssistant(const Json& message) { return TextIn(message, "role") == "assistant"; }

// The messages so far; the last one may still grow.
class Conversation {
 public:
  void Add(Json message) { messages_.push_back(std::move(message)); }

  // The last message, if it is the assistant's.
  const Json* Open() const {
    return !messages_.empty() && IsAssistant(messages_.back()) ? &messages_.back() : nullptr;
  }
  // One more member, or another value of one.
  void Set(std::string_view name, Json value) {
    Json::Object members = std::get<Json::Object>(std::move(messages_.back()).Take());
    SetIn(members, name, std::move(value));
    messages_.back() = ObjectJson(std::move(members));
  }
  // The member of the last message, changed in place: a client may send thousands of items for it.
  template <class Change>
  void Update(std::string_view name, Change change) {
    Json::Object members = std::get<Json::Object>(std::move(messages_.back()).Take());
    auto member = std::ranges::find(members, name, [](const auto& entry) { return entry.first; });
    if (member == members.end()) {
      member = members.insert(members.end(), {std::string(name), Json()});
    }
    member->second = change(std::move(member->second));
    messages_.back() = ObjectJson(std::move(members));
  }
  void AddCalls(const Json::Array& calls) {
    Update("tool_calls", [&](Json there) {
      Json::Array all;
      if (there.array() != nullptr) all = std::get<Json::Array>(std::move(there).Take());
      all.insert(all.end(), calls.begin(), calls.end());
      return ListJson(std::move(all));
    });
  }

  Json::Array Take() && { return std::move(messages_); }

 private:
  Json::Array messages_;
};

Json Turn(std::string_view role, std::string_view member, Json value) {
  return ObjectJson({{"role", TextJson(role)}, {std::string(member), std::move(value)}});
}

// vLLM: what fits into the assistant's message before it goes there.
class VllmItems {
 public:
  Result<void> Add(const Json& item, Conversation& out) const {
    const std::string_view type = TextIn(item, "type");
    if (type == "function_call" || type == "custom_tool_call") return AddCall(item, type, out);
    if (type == "reasoning") return AddReasoning(item, out);
    if (IsOutput(type)) {
      const Json* const output = item.Find("output");
      out.Add(ToolMessage(TextIn(item, "call_id"), output != nullptr ? *output : Json()));
      return {};
    }
    if (TextIn(item, "role") == "assistant") return AddAnswer(item, type, out);
    if (item.Find("role") == nullptr) return UnknownItem();
    out.Add(item);
    return {};
  }

 private:
  static Result<void> AddCall(const Json& item, std::string_view type, Conversation& out) {
    std::string name(TextIn(item, "name"));
    Json arguments;
    if (type == "custom_tool_call") {
      arguments = CustomArguments(item);
    } else {
      const Json* const given = item.Find("arguments");
      if (given == nullptr || given->string() == nullptr) return UnknownItem();
      arguments = *given;
      const std::string_view space = TextIn(item, "namespace");
      if (!space.empty()) name = std::string(space) + "__" + name;
    }
    const Json::Array calls = {CallJson(TextIn(item, "call_id"), name, std::move(arguments))};
    if (out.Open() != nullptr) {
      out.AddCalls(calls);
    } else {
      out.Add(Turn("assistant", "tool_calls", ListJson(calls)));
    }
    return {};
  }

  static Result<void> AddReasoning(const Json& item, Conversation& out) {
    if (!TextIn(item, "encrypted_content").empty()) {
      return Fail(Blame::kCaller, "the engine does not take encrypted reasoning");
    }
    const Json::Array* parts = ListIn(item, "content");
    if (parts == nullptr || parts->empty()) parts = ListIn(item, "summary");
    Json reasoning = TextJson(parts == nullptr || parts->empty() ? std::string_view()
                                                                 : TextIn((*parts)[0], "text"));
    const Json* const open = out.Open();
    if (open != nullptr && GivenIn(*open, "reasoning") == nullptr) {
      out.Set("reasoning", std::move(reasoning));
    } else {
      out.Add(Turn("assistant", "reasoning", std::move(reasoning)));
    }
    return {};
  }

  static Result<void> AddAnswer(const Json& item, std::string_view type, Conversation& out) {
    const Json* const content = item.Find("content");
    const Json* text = content;
    if (content != nullptr && content->array() != nullptr) {
      if (content->array()->empty() && type == "message") return UnknownItem();
      text = content->array()->empty() ? nullptr : content->array()->front().Find("text");
    }
    if (text == nullptr || text->string() == nullptr) {
      out.Add(item);
      return {};
    }
    const Json* const open = out.Open();
    if (open != nullptr && GivenIn(*open, "content") == nullptr) {
      out.Set("content", *text);
    } else {
      out.Add(Turn("assistant", "content", *text));
    }
    return {};
  }
};

// SGLang: each item is a message, and those of the assistant in a row become one.
class SglangItems {
 public:
  Result<void> Add(const Json& item, Conversation& out) const {
    const std::string_view type = TextIn(item, "type");
    if (type == "function_call") return Append(CallOf(item, ArgumentsOf(item)), out);
    if (type == "custom_tool_call") return Append(CallOf(item, CustomArguments(item)), out);
    if (IsOutput(type)) {
      out.Add(ToolMessage(TextIn(item, "call_id"), OutputOf(item)));
      return {};
    }
    if (type == "reasoning") return AddReasoning(item, out);
    if (!type.empty() && type != "message") return UnknownItem();
    return Append(MessageOf(item), out);
  }

 private:
  // What is no object is an empty one.
  static Json ArgumentsOf(const Json& item) {
    const Json* const given = item.Find("arguments");
    if (given != nullptr && given->object() != nullptr) return *given;
    if (given == nullptr || given->string() == nullptr) return ObjectJson({});
    const auto parsed = Json::ParseWithLargeNumbers(*given->string());
    return parsed && parsed->object() != nullptr ? *parsed : ObjectJson({});
  }

  static Json CallOf(const Json& item, Json arguments) {
    std::string_view id = TextIn(item, "call_id");
    if (id.empty()) id = TextIn(item, "id");
    return Turn("assistant", "tool_calls",
                ListJson({CallJson(id, TextIn(item, "name"), std::move(arguments))}));
  }

  static Json OutputOf(const Json& item) {
    const Json* const output = GivenIn(item, "output");
    if (output == nullptr) return TextJson("");
    if (output->array() == nullptr) return *output;
    std::string joined;
    for (const Json& part : *output->array()) joined += TextIn(part, "text");
    return TextJson(joined);
  }

  static std::string TextsOf(const Json::Array* parts) {
    std::string joined;
    if (parts == nullptr) return joined;
    for (const Json& part : *parts) {
      const std::string_view text = TextIn(part, "text");
      if (text.empty()) continue;
      if (!joined.empty()) joined += '\n';
      joined += text;
    }
    return joined;
  }

  static Result<void> AddReasoning(const Json& item, Conversation& out) {
    std::string text = TextsOf(ListIn(item, "summary"));
    if (text.empty()) text = TextsOf(ListIn(item, "content"));
    if (text.empty()) {
      if (TextIn(item, "encrypted_content").empty()) return {};
      return Fail(Blame::kCaller, "only the engine can read encrypted reasoning");
    }
    return Append(Turn("assistant", "reasoning_content", TextJson(text)), out);
  }

  // The developer's words are the system's, under a heading.
  static Json Labelled(const Json& content) {
    constexpr std::string_view kLabel = "Developer instructions:";
    const auto labelled = [&](std::string_view text) {
      return TextJson(std::string(kLabel) + "\n" + std::string(text));
    };
    if (content.string() != nullptr) return labelled(*content.string());
    if (content.array() == nullptr) return content;
    Json::Array parts = *content.array();
    for (Json& part : parts) {
      const Json* const text = part.Find("text");
      if (text == nullptr || text->string() == nullptr) continue;
      Json words = labelled(*text->string());
      Json::Object members = std::get<Json::Object>(std::move(part).Take());
      SetIn(members, "text", std::move(words));
      part = ObjectJson(std::move(members));
      return ListJson(std::move(parts));
    }
    parts.insert(parts.begin(), TextPartJson(kLabel));
    return ListJson(std::move(parts));
  }

  static Json PartOf(const Json& part) {
    const std::string_view type = TextIn(part, "type");
    const bool text = type == "input_text" || type == "output_text";
    return text ? TextPartJson(TextIn(part, "text")) : part;
  }

  static Json MessageOf(const Json& item) {
    Json::Object out;
    for (const auto& [name, value] : *item.object()) {
      if (value.is_null() || name == "id" || name == "status" || name == "type") continue;
      out.emplace_back(name, value);
    }
    const bool developer = TextIn(item, "role") == "developer";
    const Json* const given = item.Find("content");
    if (given == nullptr) return ObjectJson(std::move(out));
    Json content = developer ? Labelled(*given) : *given;
    if (developer) SetIn(out, "role", TextJson("system"));
    if (content.array() != nullptr) {
      Json::Array parts;
      for (const Json& part : *content.array()) parts.push_back(PartOf(part));
      content = ListJson(std::move(parts));
    }
    SetIn(out, "content", std::move(content));
    return ObjectJson(std::move(out));
  }

  static Json::Array AsParts(Json content) {
    if (content.array() != nullptr) return std::get<Json::Array>(std::move(content).Take());
    if (content.string() != nullptr && !content.string()->empty()) {
      return {TextPartJson(*content.string())};
    }
    return {};
  }

  static bool IsEmpty(const Json* content) {
    return content == nullptr || content->is_null() ||
           (content->string() != nullptr && content->string()->empty());
  }

  // Two phases of an answer stay apart, unless the first is a thought alone.
  static bool Fits(const Json& open, const Json& message) {
    return TextIn(open, "phase") == TextIn(message, "phase") ||
           (open.object()->size() == 2 && open.Find("reasoning_content") != nullptr);
  }

  static Result<void> Append(const Json& message, Conversation& out) {
    const Json* const open = out.Open();
    if (open == nullptr || !IsAssistant(message) || !Fits(*open, message)) {
      out.Add(message);
      return {};
    }
    if (const Json* const phase = GivenIn(message, "phase")) out.Set("phase", *phase);
    MergeContent(message, out);
    if (const Json::Array* const calls = ListIn(message, "tool_calls")) out.AddCalls(*calls);
    const std::string_view thought = TextIn(message, "reasoning_content");
    if (!thought.empty()) {
      out.Update("reasoning_content",
                 [&](Json there) { return Lengthened(std::move(there), "\n", thought); });
    }
    return {};
  }

  static Json Lengthened(Json text, std::string_view between, std::string_view more) {
    std::string all;
    if (text.string() != nullptr) all = std::get<std::string>(std::move(text).Take());
    if (!all.empty()) all += between;
    return Json(Json::Value(std::move(all.append(more))));
  }

  static void MergeContent(const Json& message, Conversation& out) {
    const Json* const more = message.Find("content");
    if (IsEmpty(more)) return;
    const Json* const there = out.Open()->Find("content");
    if (IsEmpty(there)) return out.Set("content", *more);
    const bool texts = there->string() != nullptr && more->string() != nullptr;
    out.Update("content", [&](Json content) {
      if (texts) return Lengthened(std::move(content), "\n\n", *more->string());
      Json::Array parts = AsParts(std::move(content));
      std::ranges::move(AsParts(*more), std::back_inserter(parts));
      return ListJson(std::move(parts));
    });
  }
};

// TensorRT-LLM: texts of an item become one, and calls go to the assistant's message before them.
class TrtllmItems {
 public:
  Result<void> Add(const Json& item, Conversation& out) const {
    const std::string_view type = TextIn(item, "type");
    if (type == "function_call" || type == "custom_tool_call") return AddCall(item, type, out);
    if (IsOutput(type)) {
      out.Add(ToolMessage(TextIn(item, "call_id"), TextJson(TextOf(item.Find("output")))));
      return {};
    }
    if (type.empty()) {
      if (item.Find("role") == nullptr) return UnknownItem();
      out.Add(item);
      return {};
    }
    if (type == "reasoning") {
      const Json* content = GivenIn(item, "content");
      if (content == nullptr) content = GivenIn(item, "summary");
      if (content == nullptr) return {};
      out.Add(Turn("assistant", "reasoning", TextJson(TextOf(content))));
      return {};
    }
    if (type != "message") return UnknownItem();
    const std::string_view role = TextIn(item, "role");
    out.Add(
        Turn(role.empty() ? "assistant" : role, "content", TextJson(TextOf(item.Find("content")))));
    return {};
  }

 private:
  static std::string TextOf(const Json* content) {
    if (content == nullptr) return {};
    if (content->string() != nullptr) return *content->string();
    std::string joined;
    if (content->array() == nullptr) return joined;
    for (const Json& part : *content->array()) joined += TextIn(part, "text");
    return joined;
  }

  static Result<void> AddCall(const Json& item, std::string_view type, Conversation& out) {
    std::string name(TextIn(item, "name"));
    const std::string_view space = TextIn(item, "namespace");
    if (!space.empty()) name = std::string(space) + "." + name;
    std::string_view id = TextIn(item, "call_id");
    if (id.empty()) id = TextIn(item, "id");
    Json arguments =
        type == "custom_tool_call" ? CustomArguments(item) : TextJson(TextIn(item, "arguments"));
    const Json::Array calls = {CallJson(id, name, std::move(arguments))};
    if (out.Open() != nullptr) {
      out.AddCalls(calls);
    } else {
      out.Add(Turn("assistant", "tool_calls", ListJson(calls)));
    }
    return {};
  }
};

// SGLang: all words of the system at the front, where the template takes them only there.
Json::Array WithSystemInFront(const Json::Array& messages) {
  std::string joined;
  bool any = false;
  const auto add = [&](std::string_view text) {
    if (std::exchange(any, true)) joined += "\n\n";
    joined += text;
  };
  Json::Array others;
  for (const Json& message : messages) {
    if (TextIn(message, "role") != "system") {
      others.push_back(message);
      continue;
    }
    const Json* const content = message.Find("content");
    if (content == nullptr) continue;
    if (content->string() != nullptr) add(*content->string());
    if (content->array() == nullptr) continue;
    for (const Json& part : *content->array()) {
      const Json* const text = part.Find("text");
      if (text != nullptr && text->string() != nullptr) add(*text->string());
    }
  }
  if (any) others.insert(others.begin(), Turn("system", "content", TextJson(joined)));
  return others;
}

Result<Json::Array> MessagesOf(const ChatFields& request, const Json& input, ChatDialect dialect,
                               const EngineHabits& habits) {
  Conversation out;
  TRY(const Json instructions, ReadRequestJson(request.instructions));
  if (instructions.string() != nullptr && !instructions.string()->empty()) {
    out.Add(Turn("system", "content", instructions));
  }
  if (input.string() != nullptr) {
    out.Add(Turn("user", "content", input));
  } else if (input.array() == nullptr) {
    return Fail(Blame::kCaller, "'input' is neither a text nor a list");
  } else {
    for (const Json& item : *input.array()) {
      if (item.object() == nullptr) return UnknownItem();
      if (dialect == ChatDialect::kSglang) {
        TRY_VOID(SglangItems().Add(item, out));
      } else if (dialect == ChatDialect::kTrtllm) {
        TRY_VOID(TrtllmItems().Add(item, out));
      } else {
        TRY_VOID(VllmItems().Add(item, out));
      }
    }
  }
  Json::Array messages = std::move(out).Take();
  const bool moves = dialect == ChatDialect::kSglang && !habits.takes_inline_system;
  return moves ? WithSystemInFront(messages) : messages;
}

// vLLM: an answer that says that it is not complete is continued.
bool Continues(const Json& input, ChatDialect dialect) {
  if (dialect != ChatDialect::kVllm || input.array() == nullptr || input.array()->empty()) {
    return false;
  }
  const Json& last = input.array()->back();
  const std::string_view type = TextIn(last, "type");
  const std::string_view status = TextIn(last, "status");
  return (type.empty() || type == "message" || type == "reasoning") &&
         (status == "in_progress" || status == "incomplete");
}

Json FunctionTool(Json name, Json description, Json parameters, const Json* strict) {
  Json::Object function = {{"name", std::move(name)},
                           {"description", std::move(description)},
                           {"parameters", std::move(parameters)}};
  if (strict != nullptr) function.emplace_back("strict", *strict);
  return ObjectJson(
      {{"type", TextJson("function")}, {"function", ObjectJson(std::move(function))}});
}

Json MemberOrNull(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  return member != nullptr ? *member : Json();
}

// SGLang describes the grammar of a tool that takes a text.
Json CustomDescription(const Json& tool, ChatDialect dialect) {
  const Json* const format = tool.Find("format");
  if (dialect != ChatDialect::kSglang || format == nullptr ||
      TextIn(*format, "type") != "grammar") {
    return MemberOrNull(tool, "description");
  }
  std::string text(TextIn(tool, "description"));
  if (!text.empty()) text += "\n\n";
  const std::string_view syntax = TextIn(*format, "syntax");
  text.append("The payload must conform to this ").append(syntax.empty() ? "lark" : syntax);
  text.append(" grammar:\n").append(TextIn(*format, "definition"));
  return TextJson(text);
}

class ToolReader {
 public:
  explicit ToolReader(ChatDialect dialect) : dialect_(dialect) {}

  void Add(const Json& tool, std::string_view space = {}) {
    const std::string_view type = TextIn(tool, "type");
    if (type == "namespace" && dialect_ != ChatDialect::kSglang && space.empty()) {
      const Json::Array* const inner = ListIn(tool, "tools");
      if (inner == nullptr) return;
      for (const Json& one : *inner) Add(one, TextIn(tool, "name"));
    } else if (type == "function") {
      tools_.push_back(FunctionTool(NameOf(tool, space), MemberOrNull(tool, "description"),
                                    ParametersOf(tool), StrictOf(tool)));
    } else if (type == "custom" && (space.empty() || dialect_ == ChatDialect::kTrtllm)) {
      tools_.push_back(FunctionTool(NameOf(tool, space), CustomDescription(tool, dialect_),
                                    CustomSchema(dialect_), StrictOf(tool)));
    }
  }

  Json::Array Take() && { return std::move(tools_); }

 private:
  Json NameOf(const Json& tool, std::string_view space) const {
    if (space.empty()) return TextJson(TextIn(tool, "name"));
    return TextJson(std::string(space) + (dialect_ == ChatDialect::kVllm ? "__" : ".") +
                    std::string(TextIn(tool, "name")));
  }

  Json ParametersOf(const Json& tool) const {
    const Json* const given = GivenIn(tool, "parameters");
    if (given != nullptr || dialect_ != ChatDialect::kTrtllm)
      return MemberOrNull(tool, "parameters");
    return ObjectJson({{"type", TextJson("object")}, {"properties", ObjectJson({})}});
  }

  const Json* StrictOf(const Json& tool) const {
    static const Json kNotStrict{Json::Value(false)};
    const Json* const given = GivenIn(tool, "strict");
    if (dialect_ == ChatDialect::kTrtllm) return nullptr;
    return given == nullptr && dialect_ == ChatDialect::kSglang ? &kNotStrict : given;
  }

  const ChatDialect dialect_;
  Json::Array tools_;
};

Result<void> ReadResponseTools(const ChatFields& request, ChatDialect dialect, ChatSource& source) {
  if (request.tools.empty()) return {};
  TRY(const Json::Array tools, ReadRequestList(request.tools, "tools"));
  if (tools.empty()) return {};
  ToolReader reader(dialect);
  for (const Json& tool : tools) reader.Add(tool);
  source.tools = std::move(reader).Take();
  return {};
}

Result<void> ReadResponseChoice(const ChatFields& request, ChatSource& source) {
  TRY(Json choice, ReadRequestJson(request.tool_choice));
  if (choice.object() == nullptr) {
    source.tool_choice = std::move(choice);
    return {};
  }
  const std::string_view type = TextIn(choice, "type");
  std::string_view name = TextIn(choice, "name");
  const Json* const function = choice.Find("function");
  if (name.empty() && function != nullptr) name = TextIn(*function, "name");
  if ((type != "function" && type != "custom") || name.empty()) return {};
  source.tool_choice = ObjectJson(
      {{"type", TextJson("function")}, {"function", ObjectJson({{"name", TextJson(name)}})}});
  return {};
}

}  // namespace

Result<ChatSource> ReadResponses(const ChatFields& request, ChatDialect dialect,
                                 const EngineHabits& habits) {
  if (!request.previous_response_id.empty()) {
    return Fail(Blame::kCaller, "the response that is continued is with the engine");
  }
  TRY_VOID(CheckValues(request));
  ChatSource source;
  TRY(const Json input, ReadRequestJson(request.input));
  TRY(source.messages, MessagesOf(request, input, dialect, habits));
  TRY_VOID(ReadResponseTools(request, dialect, source));
  TRY_VOID(ReadResponseChoice(request, source));
  TRY(source.kwargs, ReadKwargs(request.chat_template_kwargs));
  TRY(const Json reasoning, ReadRequestJson(request.reasoning));
  source.reasoning_effort = MemberOrNull(reasoning, "effort");
  source.continue_final_message = Continues(input, dialect);
  return source;
}

}  // namespace fathom
