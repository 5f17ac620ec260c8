#include "text/chat/developer_messages.h"

#include <algorithm>
#include <string>
#include <utility>

namespace fathom {
namespace {

constexpr std::string_view kBetweenTexts = "\n\n";

bool IsFrom(const TemplateValue& message, std::string_view role) {
  const std::string* const own = FindMember(*message.dict(), "role")->text();
  return own != nullptr && *own == role;
}

TemplateValue AsSystem(const TemplateValue& message) {
  TemplateDict out;
  for (const auto& [name, value] : *message.dict()) {
    if (name == "tools") continue;
    out.emplace_back(name, name == "role" ? TemplateValue("system") : value);
  }
  return out;
}

// Parts that are no text have none.
std::string TextOf(const TemplateValue& content) {
  if (const std::string* const text = content.text()) return *text;
  std::string joined;
  bool first = true;
  if (content.sequence() == nullptr) return joined;
  for (const TemplateValue& part : content.sequence()->items) {
    const TemplateValue* const text =
        part.dict() == nullptr ? nullptr : FindMember(*part.dict(), "text");
    if (text == nullptr || text->text() == nullptr) continue;
    if (!std::exchange(first, false)) joined += '\n';
    joined += *text->text();
  }
  return joined;
}

bool MustMerge(const TemplateList& messages) {
  const auto system = [](const TemplateValue& message) { return IsFrom(message, "system"); };
  return std::ranges::any_of(messages.begin() + 1, messages.end(), system);
}

TemplateList Merged(const TemplateList& messages) {
  std::string text;
  TemplateList out(1);
  for (const TemplateValue& message : messages) {
    if (!IsFrom(message, "system")) {
      out.push_back(message);
      continue;
    }
    const std::string own = TextOf(*FindMember(*message.dict(), "content"));
    if (!text.empty() && !own.empty()) text += kBetweenTexts;
    text += own;
  }
  out.front() = TemplateDict{{"role", "system"}, {"content", TemplateValue(std::move(text))}};
  return out;
}

}  // namespace

void FoldDeveloper(TemplateList& messages) {
  bool any = false;
  for (TemplateValue& message : messages) {
    if (!IsFrom(message, "developer")) continue;
    message = AsSystem(message);
    any = true;
  }
  if (any && MustMerge(messages)) messages = Merged(messages);
}

}  // namespace fathom
