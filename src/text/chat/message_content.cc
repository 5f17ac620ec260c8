#include "text/chat/message_content.h"

#include <array>
#include <utility>

namespace fathom {
namespace {

struct PartKind {
  std::string_view type;
  std::string_view text_in;             // the member that has its text
  std::optional<Inexact> inexact = {};  // what it is if it is no text
  std::string_view shown = {};          // what a template calls it
};

constexpr auto kPartKinds = std::to_array<PartKind>({
    {"text", "text"},
    {"input_text", "text"},
    {"output_text", "text"},
    {"refusal", "refusal"},
    {"thinking", "thinking"},
    {"image_url", "", Inexact::kImage, "image"},
    {"input_image", "", Inexact::kImage, "image"},
    {"image", "", Inexact::kImage, "image"},
    {"image_embeds", "", Inexact::kImage, "image"},
    {"audio_url", "", Inexact::kAudio, "audio"},
    {"input_audio", "", Inexact::kAudio, "audio"},
    {"audio", "", Inexact::kAudio, "audio"},
    {"video_url", "", Inexact::kVideo, "video"},
    {"video", "", Inexact::kVideo, "video"},
    {"file", "", Inexact::kFile, "file"},
    {"input_file", "", Inexact::kFile, "file"},
});

constexpr PartKind kUnknownKind = {"", "", Inexact::kUnknownPart, "unknown"};

// A part that names no type is what its member is.
const PartKind& KindOf(const Json& part) {
  const Json* const type = part.Find("type");
  const std::string* const name = type != nullptr ? type->string() : nullptr;
  for (const PartKind& kind : kPartKinds) {
    if (name != nullptr ? kind.type == *name : part.Find(kind.type) != nullptr) return kind;
  }
  return kUnknownKind;
}

TemplateDict TextPart(std::string text) {
  return {{"type", "text"}, {"text", TemplateValue(std::move(text))}};
}

// Claude Code writes a line with a number that changes with every request before its system prompt;
// vLLM takes it away. False: nothing is left of the text.
bool DropBillingLine(std::string& text) {
  constexpr std::string_view kBilling = "x-anthropic-billing-header";
  if (!text.starts_with(kBilling)) return true;
  const size_t line = text.find('\n');
  text.erase(0, line == std::string::npos ? text.size() : line + 1);
  return !text.empty();
}

class ContentReader {
 public:
  ContentReader(std::string_view role, const ChatPreparation& how)
      : filter_(how.filter),
        from_outside_(role == "user" || role == "tool"),
        rules_(RulesOf(how.dialect)),
        drops_billing_(role == "system" && rules_.drops_billing_line) {}

  bool only_texts() const { return !inexact_; }

  Result<void> Add(const Json& part) {
    if (const std::string* const text = part.string()) return AddText(*text);
    if (part.object() == nullptr)
      return Fail(Blame::kCaller,
                  "a part of a content is not an "
                  "object");
    const PartKind& kind = KindOf(part);
    if (kind.inexact) return AddUnknown(kind);
    if (rules_.plain_texts_only && kind.type != "text" && kind.type != "input_text") return {};
    const Json* const text = part.Find(kind.text_in);
    if (text == nullptr || text->is_null()) return {};
    if (text->string() == nullptr)
      return Fail(Blame::kCaller,
                  "a text part of a content is not "
                  "a text");
    return AddText(*text->string());
  }

  std::string Filtered(const std::string& text) const {
    return filter_ != nullptr ? filter_->Apply(text, from_outside_) : text;
  }

  // One text: those of the parts that have some, one below the other. Engines put what stands for
  // an image before all of it.
  MessageContent Joined() && {
    std::string joined = inexact_ ? std::string(kUnknownMark) : std::string();
    bool first = true;
    for (const TemplateValue& part : parts_) {
      if (!part.is_text() || (part.text()->empty() && !rules_.joins_empty_texts)) continue;
      if (!std::exchange(first, false)) joined += rules_.separator;
      joined += *part.text();
    }
    return {TemplateValue(std::move(joined)), inexact_, {}};
  }

  MessageContent Parts() && {
    MessageContent content{.inexact = inexact_};
    TemplateList parts;
    for (TemplateValue& part : parts_) {
      parts.push_back(part.is_text() ? TemplateValue(TextPart(*part.text())) : std::move(part));
    }
    if (inexact_) {
      content.as_is = TemplateValue(parts);
      for (TemplateValue& part : parts) {
        if (part.dict()->size() == 1) part = TextPart(std::string(kUnknownMark));
      }
    }
    content.value = TemplateValue(std::move(parts));
    return content;
  }

 private:
  Result<void> AddText(std::string text) {
    if (drops_billing_ && !DropBillingLine(text)) return {};
    parts_.emplace_back(Filtered(text));
    return {};
  }

  Result<void> AddUnknown(const PartKind& kind) {
    if (!inexact_) inexact_ = kind.inexact;
    parts_.emplace_back(TemplateDict{{"type", TemplateValue(kind.shown)}});
    return {};
  }

  const TextFilter* const filter_;
  const bool from_outside_;
  const ChatRules& rules_;
  const bool drops_billing_;
  std::vector<TemplateValue> parts_;  // texts, and what is none
  std::optional<Inexact> inexact_;
};

}  // namespace

Result<MessageContent> ReadContent(const Json* content, std::string_view role,
                                   const ChatPreparation& how) {
  const ChatRules& rules = RulesOf(how.dialect);
  ContentReader reader(role, how);
  if (content != nullptr && content->string() != nullptr) {
    const bool wrapped = how.content_in_parts && rules.wraps_text && role != "tool";
    TRY_VOID(reader.Add(*content));
    return wrapped ? std::move(reader).Parts() : std::move(reader).Joined();
  }
  if (content == nullptr || content->is_null()) {
    if (!how.content_in_parts || !rules.wraps_text || role == "tool") {
      return MessageContent{TemplateValue(""), {}, {}};
    }
    return MessageContent{TemplateValue(TemplateList()), {}, {}};
  }
  if (content->array() == nullptr) {
    return Fail(Blame::kCaller, "the content of a message is neither text nor a list of parts");
  }
  for (const Json& part : *content->array()) TRY_VOID(reader.Add(part));
  const bool joined = reader.only_texts() && (rules.joins_texts || role == "tool");
  return how.content_in_parts && !joined ? std::move(reader).Parts() : std::move(reader).Joined();
}

}  // namespace fathom
