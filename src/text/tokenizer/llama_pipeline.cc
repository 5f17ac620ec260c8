#include "text/tokenizer/llama_pipeline.h"

#include <algorithm>
#include <utility>

namespace fathom {
namespace {

constexpr std::string_view kWordMark = "\xe2\x96\x81";  // U+2581

// Whether the part, or one inside it, is of that type.
bool HasType(const Json& part, std::string_view type) {
  if (const Json::Array* const list = part.array()) {
    return std::ranges::any_of(*list, [&](const Json& item) { return HasType(item, type); });
  }
  const Json* const own = part.Find("type");
  if (own != nullptr && own->string() != nullptr && *own->string() == type) return true;
  for (const std::string_view inside : {"pretokenizers", "decoders"}) {
    const Json* const parts = part.Find(inside);
    if (parts != nullptr && HasType(*parts, type)) return true;
  }
  return false;
}

Json Text(std::string_view text) { return Json(std::string(text)); }

Json Object(Json::Object members) { return Json(std::move(members)); }

Json Metaspace(const std::string& prepend_scheme) {
  return Object({{"type", Text("Metaspace")},
                 {"replacement", Text(kWordMark)},
                 {"prepend_scheme", Text(prepend_scheme)},
                 {"split", Json(false)}});
}

}  // namespace

void UseLlamaPipeline(const LlamaPipeline& llama, TokenizerJson& read) {
  if (HasType(read.pre_tokenizer, "ByteLevel") || HasType(read.decoder, "ByteLevel")) return;
  read.normalizer = Json();
  read.pre_tokenizer = Metaspace(llama.prepend_scheme);
  read.rules.fuse_unknown = true;
  read.rules.byte_fallback = true;
  read.rules.ignore_merges = false;
  read.rules.unknown = Vocabulary::kNone;
}

}  // namespace fathom
