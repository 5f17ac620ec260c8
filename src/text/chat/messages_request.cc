#include "text/chat/messages_request.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "text/chat/json_pieces.h"
#include "text/chat/message_tools.h"
#include "text/chat/request_values.h"

namespace fathom {
namespace {

// What engines do differently.
struct MessagesRules {
  std::string_view between_system_texts;
  std::string_view between_thoughts;
  bool drops_billing_part;       // of a system prompt, and billing messages of the system
  bool drops_first_billing;      // only the first part, and only if it has nothing else
  bool trims_system;             // what is merged into the first system message
  bool keeps_empty_texts;        // of messages
  bool results_come_first;       // before the texts of the same message, wherever these stand
  bool parts_stay;               // of results: a list of parts, not one text
  bool thoughts_are_text;        // written into the message; else its "reasoning"
  bool refuses_hidden_thoughts;  // "redacted_thinking"; else skipped
  bool empty_answers_stay;       // of the assistant, as an empty text
  bool says_failed;              // where a result is an error
  bool takes_kwargs;             // chat_template_kwargs
};

constexpr MessagesRules kVllmMessages = {.between_system_texts = "",
                                         .between_thoughts = "",
                                         .drops_billing_part = true,
                                         .drops_first_billing = false,
                                         .trims_system = false,
                                         .keeps_empty_texts = false,
                                         .results_come_first = true,
                                         .parts_stay = false,
                                         .thoughts_are_text = false,
                                         .refuses_hidden_thoughts = false,
                                         .empty_answers_stay = false,
                                         .says_failed = false,
                                         .takes_kwargs = true};

constexpr MessagesRules kSglangMessages = {.between_system_texts = "\n",
                                           .between_thoughts = "\n",
                                           .drops_billing_part = false,
                                           .drops_first_billing = false,
                                           .trims_system = true,
                                           .keeps_empty_texts = true,
                                           .results_come_first = false,
                                           .parts_stay = true,
                                           .thoughts_are_text = true,
                                           .refuses_hidden_thoughts = true,
                                           .empty_answers_stay = true,
                                           .says_failed = false,
                                           .takes_kwargs = false};

constexpr MessagesRules kTrtllmMessages = {.between_system_texts = "\n\n",
                                           .between_thoughts = "",
                                           .drops_billing_part = false,
                                           .drops_first_billing = true,
                                           .trims_system = false,
                                           .keeps_empty_texts = true,
                                           .results_come_first = false,
                                           .parts_stay = false,
                                           .thoughts_are_text = false,
                                           .refuses_hidden_thoughts = true,
                                           .empty_answers_stay = false,
                                           .says_failed = true,
                                           .takes_kwargs = false};

const MessagesRules& RulesFor(ChatDialect dialect) {
  if (dialect == ChatDialect::kSglang) return kSglangMessages;
  return dialect == ChatDialect::kTrtllm ? kTrtllmMessages : kVllmMessages;
}

// Claude Code puts a part with a number that changes with every request before its system prompt.
constexpr std::string_view kBilling = "x-anthropic-billing-header";

// TensorRT-LLM takes it away only if nothing but "name=value;" follows.
bool IsBillingOnly(std::string_view text) {
  if (!text.starts_with(kBilling)) return false;
  text = Trim(text.substr(kBilling.size()));
  if (!text.starts_with(':')) return false;
  text = Trim(text.substr(1));
  bool any = false;
  while (!text.empty()) {
    const size_t equals = text.find('=');
    const size_t end = text.find(';');
    if (equals == 0 || equals == std::string_view::npos || end == std::string_view::npos ||
        end < equals) {
      return false;
    }
    text = Trim(text.substr(end + 1));
    any = true;
  }
  return any;
}

// SGLang reads arguments with a parser that knows no integers beyond 64 bits.
Result<Json> AsSglangReads(const Json& value) {
  if (const auto* const list = value.array()) {
    Json::Array out;
    for (const Json& item : *list) {
      TRY(Json read, AsSglangReads(item));
      out.push_back(std::move(read));
    }
    return ListJson(std::move(out));
  }
  if (const auto* const object = value.object()) {
    Json::Object out;
    for (const auto& [name, member] : *object) {
      TRY(Json read, AsSglangReads(member));
      out.emplace_back(name, std::move(read));
    }
    return ObjectJson(std::move(out));
  }
  double number = 0;
  if (const auto* const big = std::get_if<Json::BigInteger>(&value.value())) {
    number = std::strtod(big->digits.c_str(), nullptr);
  } else if (const auto* const real = std::get_if<double>(&value.value())) {
    number = *real;
  } else {
    return value;
  }
  if (!std::isfinite(number)) {
    return Fail(Blame::kCaller, "the input of a tool has a number that is not finite");
  }
  return Json(Json::Value(number));
}

bool HasImage(const Json& block) {
  const Json* const source = GivenIn(block, "source");
  return source != nullptr && source->object() != nullptr && !source->object()->empty();
}

Json ImagePart() { return ObjectJson({{"type", TextJson("image_url")}}); }

// What a search has found, as SGLang writes it down.
std::string SearchText(const Json& block) {
  std::string out;
  const auto add = [&](std::string_view name, std::string_view text) {
    if (text.empty()) return;
    if (!out.empty()) out += '\n';
    out.append(name).append(text);
  };
  add("Title: ", TextIn(block, "title"));
  const Json* const source = GivenIn(block, "source");
  if (source != nullptr && source->object() != nullptr) {
    const std::string_view url = TextIn(*source, "url");
    add("Source: ", url.empty() ? TextIn(*source, "text") : url);
  } else {
    add("Source: ", TextIn(block, "source"));
  }
  std::string found(TextIn(block, "content"));
  if (const auto* const parts = ListIn(block, "content")) {
    for (const Json& part : *parts) {
      const std::string_view text = TextIn(part, "text");
      if (TextIn(part, "type") != "text" || text.empty()) continue;
      if (!found.empty()) found += '\n';
      found += text;
    }
  }
  add("Content: ", found);
  return out;
}

std::string_view NameOfReference(const Json& block) {
  const std::string_view name = TextIn(block, "tool_name");
  return name.empty() ? TextIn(block, "name") : name;
}

Json ReferencePart(std::string_view name) {
  return ObjectJson({{"type", TextJson("tool_reference")}, {"name", TextJson(name)}});
}

// One text is a text; other parts are a list.
Json ContentOf(Json::Array parts) {
  if (parts.size() == 1 && TextIn(parts[0], "type") == "text") return *parts[0].Find("text");
  return ListJson(std::move(parts));
}

// The messages of a request, one after the other.
class MessagesReader {
 public:
  MessagesReader(ChatDialect dialect, const EngineHabits& habits)
      : dialect_(dialect), rules_(RulesFor(dialect)), habits_(habits) {}

  Result<void> AddSystem(const Json& system) {
    if (const std::string* const text = system.string()) {
      const bool blank = rules_.trims_system ? Trim(*text).empty() : text->empty();
      if (!blank) system_.push_back(*text);
      return {};
    }
    if (system.is_null()) return {};
    if (system.array() == nullptr) {
      return Fail(Blame::kCaller, "'system' is neither a text nor a list of parts");
    }
    for (size_t i = 0; i < system.array()->size(); ++i) {
      const Json& block = (*system.array())[i];
      const std::string_view text = TextIn(block, "text");
      if (TextIn(block, "type") != "text" || text.empty() || IsBilling(text)) continue;
      if (rules_.drops_first_billing && i == 0 && IsBillingOnly(text)) continue;
      system_.emplace_back(text);
    }
    return {};
  }

  Result<void> Add(const Json& message) {
    const std::string_view role = TextIn(message, "role");
    if (role != "user" && role != "assistant" && role != "system") {
      return Fail(Blame::kCaller, "a message has a role that /v1/messages does not know");
    }
    const Json* const content = GivenIn(message, "content");
    if (content == nullptr || (content->string() == nullptr && content->array() == nullptr)) {
      return Fail(Blame::kCaller, "a message has no content");
    }
    if (role == "system" && TakeSystem(*content)) return {};
    in_front_ = false;
    if (content->string() != nullptr) {
      Append(role, *content);
      return {};
    }
    return AddBlocks(role, *content->array());
  }

  Json::Array Take() && {
    if (system_.empty()) return std::move(messages_);
    std::string joined;
    for (size_t i = 0; i < system_.size(); ++i) {
      if (i > 0) joined += rules_.between_system_texts;
      joined += system_[i];
    }
    Json::Array all;
    all.reserve(messages_.size() + 1);
    all.push_back(ObjectJson({{"role", TextJson("system")}, {"content", TextJson(joined)}}));
    std::ranges::move(messages_, std::back_inserter(all));
    return all;
  }

 private:
  bool IsBilling(std::string_view text) const {
    return rules_.drops_billing_part && text.starts_with(kBilling);
  }

  // What an engine takes out of a message of the system, if it is moved or cleaned.
  std::string SystemText(const Json& content) const {
    if (const std::string* const text = content.string()) {
      if (IsBilling(*text)) return {};
      return std::string(rules_.trims_system ? Trim(*text) : std::string_view(*text));
    }
    std::string joined;
    for (const Json& block : *content.array()) {
      std::string_view text = TextIn(block, "text");
      if (rules_.trims_system) text = Trim(text);
      if (TextIn(block, "type") != "text" || text.empty() || IsBilling(text)) continue;
      if (!joined.empty()) joined += rules_.between_system_texts;
      joined += text;
    }
    return joined;
  }

  // A message of the system; false if it is converted like the others.
  bool TakeSystem(const Json& content) {
    if (dialect_ == ChatDialect::kTrtllm) {
      if (!in_front_) return false;
      TakeLeadingSystem(content);
      return true;
    }
    if (!habits_.takes_inline_system) {
      std::string text = SystemText(content);
      if (!text.empty()) system_.push_back(std::move(text));
      return true;
    }
    if (dialect_ != ChatDialect::kVllm) return false;
    const std::string text = SystemText(content);
    if (!text.empty()) Append("system", TextJson(text));
    return true;
  }

  void TakeLeadingSystem(const Json& content) {
    if (content.string() != nullptr) {
      system_.push_back(*content.string());
      return;
    }
    for (const Json& block : *content.array()) {
      if (TextIn(block, "type") == "text") system_.emplace_back(TextIn(block, "text"));
    }
  }

  void Append(std::string_view role, Json content) {
    messages_.push_back(ObjectJson({{"role", TextJson(role)}, {"content", std::move(content)}}));
  }

  Result<void> AddBlocks(std::string_view role, const Json::Array& blocks) {
    parts_.clear();
    calls_.clear();
    thoughts_.clear();
    thinks_ = false;
    if (rules_.thoughts_are_text && role == "assistant") TRY_VOID(WriteThoughts(blocks));
    for (const Json& block : blocks) TRY_VOID(AddBlock(role, block));
    Finish(role);
    return {};
  }

  Result<void> AddBlock(std::string_view role, const Json& block) {
    const std::string_view type = TextIn(block, "type");
    if (type == "text") return AddText(block);
    if (type == "image") return AddImage(block);
    if (type == "thinking") return AddThought(role, block);
    if (type == "redacted_thinking") return AddHiddenThought(role);
    if (type == "tool_use") return AddCall(role, block);
    if (type == "tool_result") return AddResult(role, block);
    if (type == "search_result" && dialect_ == ChatDialect::kSglang) {
      const std::string text = SearchText(block);
      if (!text.empty()) parts_.push_back(TextPartJson(text));
      return {};
    }
    if (type == "tool_reference" && dialect_ != ChatDialect::kTrtllm) return {};
    if ((type == "tool_addition" || type == "tool_removal") && ChangesTools(dialect_)) return {};
    return Fail(Blame::kCaller, "a message has a block that the engine does not know");
  }

  Result<void> AddText(const Json& block) {
    const Json* const text = GivenIn(block, "text");
    if (text == nullptr || text->string() == nullptr) return {};
    if (text->string()->empty() && !rules_.keeps_empty_texts) return {};
    parts_.push_back(TextPartJson(*text->string()));
    return {};
  }

  Result<void> AddImage(const Json& block) {
    if (HasImage(block)) parts_.push_back(ImagePart());
    return {};
  }

  Result<void> AddThought(std::string_view role, const Json& block) {
    if (rules_.thoughts_are_text) return {};  // written down already
    if (dialect_ == ChatDialect::kTrtllm && role != "assistant") {
      return Fail(Blame::kCaller, "a thinking block is only allowed in a message of the assistant");
    }
    if (GivenIn(block, "thinking") == nullptr) return {};
    if (thinks_) thoughts_ += rules_.between_thoughts;
    thoughts_ += TextIn(block, "thinking");
    thinks_ = true;
    return {};
  }

  Result<void> AddHiddenThought(std::string_view role) {
    if (!rules_.refuses_hidden_thoughts) return {};
    if (rules_.thoughts_are_text && role != "assistant") return {};
    return Fail(Blame::kCaller, "the engine does not accept redacted_thinking blocks");
  }

  // SGLang: all thoughts of the message before its other parts.
  Result<void> WriteThoughts(const Json::Array& blocks) {
    std::string joined;
    for (const Json& block : blocks) {
      const std::string_view thought = TextIn(block, "thinking");
      if (TextIn(block, "type") != "thinking" || thought.empty()) continue;
      if (!joined.empty()) joined += rules_.between_thoughts;
      joined += thought;
    }
    if (joined.empty() || !habits_.thoughts) return {};
    std::string text(habits_.thoughts->before);
    text.append(joined).append("\n").append(habits_.thoughts->after);
    parts_.push_back(TextPartJson(text));
    return {};
  }

  Result<void> AddCall(std::string_view role, const Json& block) {
    if (dialect_ == ChatDialect::kTrtllm && role != "assistant") {
      return Fail(Blame::kCaller, "a tool_use block is only allowed in a message of the assistant");
    }
    const Json* const input = GivenIn(block, "input");
    if (input != nullptr && input->object() == nullptr) {
      return Fail(Blame::kCaller, "the input of a tool is not an object");
    }
    Json arguments = input != nullptr ? *input : ObjectJson({});
    if (dialect_ == ChatDialect::kSglang) {
      TRY(arguments, AsSglangReads(arguments));
    }
    calls_.push_back(CallJson(TextIn(block, "id"), TextIn(block, "name"), std::move(arguments)));
    return {};
  }

  Result<void> AddResult(std::string_view role, const Json& block) {
    if (role != "user" && dialect_ != ChatDialect::kTrtllm) return QuoteResult(block);
    if (!rules_.results_come_first) FlushParts(role);
    std::string_view call = TextIn(block, "tool_use_id");
    if (call.empty() && dialect_ == ChatDialect::kSglang) call = TextIn(block, "id");
    const Json* const content = GivenIn(block, "content");
    const Json::Array* const items = content != nullptr ? content->array() : nullptr;
    if (items != nullptr && rules_.parts_stay) return AddResultParts(call, *items);
    std::string text(TextIn(block, "content"));
    size_t images = 0;
    Json::Array references;
    if (items != nullptr) TRY_VOID(ReadResult(*items, text, images, references));
    const Json* const failed = block.Find("is_error");
    if (rules_.says_failed && failed != nullptr && failed->boolean() != nullptr &&
        *failed->boolean()) {
      text.insert(0, "Tool execution failed: ");
    }
    messages_.push_back(ToolMessage(call, TextJson(text)));
    if (images > 0) Append("user", ListJson(Json::Array(images, ImagePart())));
    if (!references.empty()) messages_.push_back(ToolMessage(call, ListJson(references)));
    return {};
  }

  // vLLM, TensorRT-LLM: one text.
  Result<void> ReadResult(const Json::Array& items, std::string& text, size_t& images,
                          Json::Array& references) const {
    bool first = true;
    for (const Json& item : items) {
      const std::string_view type = TextIn(item, "type");
      if (type == "text") {
        if (!std::exchange(first, false)) text += '\n';
        text += TextIn(item, "text");
      } else if (dialect_ == ChatDialect::kTrtllm) {
        return Fail(Blame::kCaller, "the result of a tool is not a text");
      } else if (type == "image") {
        ++images;
      } else if (type == "tool_reference" && !NameOfReference(item).empty()) {
        references.push_back(ReferencePart(NameOfReference(item)));
      }
    }
    return {};
  }

  // SGLang: parts, and a message of its own for each run of references.
  Result<void> AddResultParts(std::string_view call, const Json::Array& items) {
    std::vector<Json::Array> groups;
    auto add = [&, referred = false](Json part, bool reference) mutable {
      if (groups.empty() || referred != reference) groups.emplace_back();
      referred = reference;
      groups.back().push_back(std::move(part));
    };
    for (const Json& item : items) {
      const std::string_view type = TextIn(item, "type");
      if (type == "text" && !TextIn(item, "text").empty()) {
        add(TextPartJson(TextIn(item, "text")), false);
      } else if (type == "image" && HasImage(item)) {
        add(ImagePart(), false);
      } else if (type == "tool_reference" && !NameOfReference(item).empty()) {
        add(ReferencePart(NameOfReference(item)), true);
      } else if (type == "search_result" && !SearchText(item).empty()) {
        add(TextPartJson(SearchText(item)), false);
      }
    }
    if (groups.empty()) messages_.push_back(ToolMessage(call, TextJson("")));
    for (Json::Array& group : groups) {
      messages_.push_back(ToolMessage(call, ContentOf(std::move(group))));
    }
    return {};
  }

  // A result that the assistant claims to have.
  Result<void> QuoteResult(const Json& block) {
    const Json* const content = GivenIn(block, "content");
    std::string text = "Tool result: ";
    if (content != nullptr && content->string() != nullptr) {
      text += *content->string();
    } else if (content != nullptr && (content->array() == nullptr || !content->array()->empty())) {
      return Fail(Blame::kCaller, "a message of the assistant has the result of a tool");
    }
    parts_.push_back(TextPartJson(text));
    return {};
  }

  // What comes before a result stays before it.
  void FlushParts(std::string_view role) {
    if (parts_.empty()) return;
    if (dialect_ == ChatDialect::kTrtllm) {
      AppendTurn(role, ListJson(std::exchange(parts_, {})), false);
    } else {
      Append("user", ContentOf(std::exchange(parts_, {})));
    }
  }

  void AppendTurn(std::string_view role, std::optional<Json> content, bool with_calls) {
    Json::Object message = {{"role", TextJson(role)}};
    if (content) message.emplace_back("content", *std::move(content));
    if (thinks_) message.emplace_back("reasoning", TextJson(std::exchange(thoughts_, {})));
    thinks_ = false;
    if (with_calls && !calls_.empty()) {
      message.emplace_back("tool_calls", ListJson(std::exchange(calls_, {})));
    }
    messages_.push_back(ObjectJson(std::move(message)));
  }

  void Finish(std::string_view role) {
    if (dialect_ == ChatDialect::kTrtllm) return FinishTrtllm(role);
    std::optional<Json> content;
    if (!parts_.empty()) content = ContentOf(std::exchange(parts_, {}));
    if (!content && rules_.empty_answers_stay && role != "user" && calls_.empty()) {
      content = TextJson("");
    }
    // A message of the user with nothing but results has become messages of the tools.
    if (role == "user" && !content && (calls_.empty() || !rules_.parts_stay)) return;
    AppendTurn(role, std::move(content), true);
  }

  void FinishTrtllm(std::string_view role) {
    if (calls_.empty()) {
      FlushParts(role);
      if (thinks_) AppendTurn(role, std::nullopt, false);
      return;
    }
    std::string text;
    for (const Json& part : parts_) text += TextIn(part, "text");
    parts_.clear();
    AppendTurn(role, text.empty() ? std::nullopt : std::optional(TextJson(text)), true);
  }

  const ChatDialect dialect_;
  const MessagesRules& rules_;
  const EngineHabits& habits_;
  std::vector<std::string> system_;
  bool in_front_ = true;  // no message but those of the system so far
  Json::Array messages_;
  // Of the message that is read.
  Json::Array parts_;
  Json::Array calls_;
  std::string thoughts_;
  bool thinks_ = false;
};

Result<void> ReadMessageChoice(const ChatFields& request, ChatSource& source) {
  TRY(const Json choice, ReadRequestJson(request.tool_choice));
  const std::string_view type = TextIn(choice, "type");
  if (type == "none") {
    source.tool_choice = TextJson("none");
  } else if (type == "tool") {
    source.tool_choice =
        ObjectJson({{"type", TextJson("function")},
                    {"function", ObjectJson({{"name", TextJson(TextIn(choice, "name"))}})}});
  }
  return {};
}

// How hard to think, and whether at all.
Result<void> ReadThinking(const ChatFields& request, ChatDialect dialect,
                          const EngineHabits& habits, ChatSource& source) {
  TRY(const Json output, ReadRequestJson(request.output_config));
  TRY(const Json thinking, ReadRequestJson(request.thinking));
  const Json* const effort = GivenIn(output, "effort");
  const std::string_view type = TextIn(thinking, "type");
  if (effort != nullptr) source.reasoning_effort = *effort;
  if (dialect == ChatDialect::kVllm && type == "disabled") {
    source.reasoning_effort = TextJson(habits.hears_no_effort ? "none" : "low");
  }
  if (dialect != ChatDialect::kSglang) return {};
  if (TextIn(output, "effort") == "xhigh") source.reasoning_effort = TextJson("max");
  source.effort_is_switch = false;
  if (type.empty() || !habits.thoughts || habits.thinking_argument.empty()) return {};
  source.kwargs.emplace_back(habits.thinking_argument, Json(Json::Value(type != "disabled")));
  return {};
}

}  // namespace

Result<ChatSource> ReadMessages(const ChatFields& request, ChatDialect dialect,
                                const EngineHabits& habits) {
  TRY_VOID(CheckValues(request));
  ChatSource source;
  TRY(const Json system, ReadRequestJson(request.system));
  TRY(const Json::Array messages, ReadRequestList(request.messages, "messages"));
  MessagesReader reader(dialect, habits);
  TRY_VOID(reader.AddSystem(system));
  for (const Json& message : messages) TRY_VOID(reader.Add(message));
  source.messages = std::move(reader).Take();
  TRY(source.tools, ReadMessageTools(request, messages, dialect));
  TRY_VOID(ReadMessageChoice(request, source));
  if (RulesFor(dialect).takes_kwargs) {
    TRY(source.kwargs, ReadKwargs(request.chat_template_kwargs));
  }
  TRY_VOID(ReadThinking(request, dialect, habits, source));
  return source;
}

}  // namespace fathom
