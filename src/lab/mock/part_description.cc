#include "lab/mock/part_description.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <utility>

#include "codec/json.h"

namespace fathom {
namespace {

// A part that names no type is what its member is.
bool IsText(const Json& part) {
  static constexpr std::array<std::string_view, 5> kTexts = {"text", "input_text", "output_text",
                                                             "refusal", "thinking"};
  if (part.object() == nullptr) return true;  // or nothing that could be described
  const Json* const type = part.Find("type");
  const std::string* const name = type != nullptr ? type->string() : nullptr;
  return std::ranges::any_of(kTexts, [&](std::string_view text) {
    return name != nullptr ? *name == text : part.Find(text) != nullptr;
  });
}

Json Described(const Json& part) {
  const Json* const type = part.Find("type");
  const std::string* const name = type != nullptr ? type->string() : nullptr;
  std::string written;
  part.WriteTo(written);
  std::string text = fmt::format("[{}:{:016x}]", name != nullptr ? *name : "part",
                                 XXH3_64bits(written.data(), written.size()));
  return Json(Json::Object{{"type", Json(std::string("text"))}, {"text", Json(std::move(text))}});
}

Json WithoutMedia(const Json& message) {
  if (message.object() == nullptr) return message;
  Json::Object out = *message.object();
  for (auto& [name, value] : out) {
    if (name != "content" || value.array() == nullptr) continue;
    Json::Array parts = *value.array();
    for (Json& part : parts) {
      if (!IsText(part)) part = Described(part);
    }
    value = Json(std::move(parts));
  }
  return Json(std::move(out));
}

}  // namespace

bool IsPart(Inexact why) {
  return why == Inexact::kImage || why == Inexact::kAudio || why == Inexact::kVideo ||
         why == Inexact::kFile || why == Inexact::kUnknownPart;
}

Result<std::string> DescribeParts(std::string_view messages) {
  TRY(const Json chat, Json::Parse(messages));
  if (chat.array() == nullptr) return Fail(Blame::kCaller, "messages must be a list");
  Json::Array out;
  for (const Json& message : *chat.array()) out.push_back(WithoutMedia(message));
  std::string text;
  Json(std::move(out)).WriteTo(text);
  return text;
}

}  // namespace fathom
