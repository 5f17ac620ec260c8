#include "text/tokenizer/decoder.h"

#include <optional>
#include <utility>

#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/part_json.h"

namespace fathom {
namespace {

void ReplaceAll(std::string& text, std::string_view what, std::string_view by) {
  size_t at = text.find(what);
  if (at == text.npos) return;
  std::string out;
  size_t done = 0;
  for (; at != text.npos; at = text.find(what, done)) {
    out.append(text, done, at - done).append(by);
    done = at + what.size();
  }
  text = std::move(out.append(text, done));
}

// "<0x0A>"
std::optional<char> ByteOf(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with(">")) return std::nullopt;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const size_t digit = std::string_view("0123456789ABCDEFabcdef").find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    value = value * 16 + static_cast<int>(digit < 16 ? digit : digit - 6);
  }
  return static_cast<char>(value);
}

void StripEnds(std::string& text, std::string_view what, uint64_t start, uint64_t stop) {
  for (; start > 0 && text.starts_with(what); --start) text.erase(0, what.size());
  for (; stop > 0 && text.ends_with(what); --stop) text.resize(text.size() - what.size());
}

Result<uint64_t> Count(const Json& json, std::string_view key) {
  TRY(const Json* member, PartMember(json, key));
  const std::optional<uint64_t> count = member->unsigned_integer();
  if (!count) return Fail(Blame::kCaller, "'{}' is not a number", key);
  return *count;
}

}  // namespace

struct Decoder::Piecewise {
  std::string& text;
  bool first;

  void operator()(ByteLevel) const {
    if (std::optional<std::string> bytes = BytesOfCharacters(text)) text = *std::move(bytes);
  }
  void operator()(ByteFallback) const {
    if (const std::optional<char> byte = ByteOf(text)) text.assign(1, *byte);
  }
  void operator()(const Replace& replace) const { ReplaceAll(text, replace.what, replace.by); }
  void operator()(const Metaspace& meta) const {
    ReplaceAll(text, meta.space, first && meta.drop_first ? "" : " ");
  }
  void operator()(const Strip& strip) const {
    StripEnds(text, strip.character, strip.start, strip.stop);
  }
};

Result<Decoder::Step> Decoder::ParseStep(const Json& json, std::string_view type) {
  if (type == "ByteLevel") return ByteLevel{};
  if (type == "ByteFallback") return ByteFallback{};
  if (type == "Replace") {
    TRY(const Json* pattern, PartMember(json, "pattern"));
    if (pattern->Find("String") == nullptr) {
      return Fail(Blame::kCaller, "not supported: decoder Replace with an expression");
    }
    TRY(std::string what, PartText(*pattern, "String"));
    TRY(std::string by, PartText(json, "content"));
    if (what.empty()) return Fail(Blame::kCaller, "not supported: an empty pattern");
    return Replace{std::move(what), std::move(by)};
  }
  if (type == "Metaspace") {
    TRY(std::string space, PartText(json, "replacement"));
    TRY(const bool prefix, PartFlag(json, "add_prefix_space", true));
    const Json* scheme = json.Find("prepend_scheme");
    const bool named = scheme != nullptr && scheme->string() != nullptr;
    if (space.empty()) return Fail(Blame::kCaller, "'replacement' is empty");
    return Metaspace{std::move(space), named ? *scheme->string() != "never" : prefix};
  }
  if (type == "Strip") {
    TRY(std::string character, PartText(json, "content"));
    TRY(const uint64_t start, Count(json, "start"));
    TRY(const uint64_t stop, Count(json, "stop"));
    if (character.empty()) return Fail(Blame::kCaller, "'content' is empty");
    return Strip{std::move(character), start, stop};
  }
  return Fail(Blame::kCaller, "not supported: decoder {}", type);
}

Result<Decoder> Decoder::Parse(const Json& json) {
  std::vector<const Json*> parts;
  TRY_VOID(FlattenParts(json, "decoders", parts));
  Decoder decoder;
  decoder.spaces_between_ = json.is_null();
  bool fused = false;
  for (const Json* part : parts) {
    TRY(const std::string type, PartType(*part));
    if (type == "Fuse") {
      fused = true;
      continue;
    }
    TRY(Step step, ParseStep(*part, type));
    if (!fused) {
      decoder.steps_.push_back(std::move(step));
    } else if (auto* strip = std::get_if<Strip>(&step)) {
      decoder.ends_.push_back(std::move(*strip));
    } else {
      return Fail(Blame::kCaller, "not supported: decoder {} behind Fuse", type);
    }
  }
  return decoder;
}

std::string Decoder::Piece(std::string_view token) const {
  std::string text(token);
  for (const Step& step : steps_) std::visit(Piecewise{text, false}, step);
  return text;
}

void Decoder::Append(std::string_view token, bool first, std::string& out) const {
  std::string text(token);
  for (const Step& step : steps_) std::visit(Piecewise{text, first}, step);
  if (spaces_between_ && !first) out += ' ';
  out += text;
}

void Decoder::Finish(std::string& out) const {
  for (const Strip& strip : ends_) StripEnds(out, strip.character, strip.start, strip.stop);
}

}  // namespace fathom
