#include "router/gateway/prompt_text.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "codec/byte_scan.h"
#include "codec/json_scan.h"

namespace fathom {
namespace {

// Bytes that are rare in texts stand between them.
constexpr char kTurn = '\x1e';
constexpr char kEnd = '\x1f';

constexpr std::string_view kBillingHeader = "x-anthropic-billing-header";

// Members that change from turn to turn, or that engines do not render.
constexpr auto kNotRendered = std::to_array<std::string_view>(
    {"annotations", "cache_control", "call_id", "citations", "encrypted_content", "id", "index",
     "logprobs", "signature", "status", "tool_call_id", "tool_use_id"});
// Members whose objects have a text, a role or a call, as messages do.
constexpr auto kWithParts = std::to_array<std::string_view>(
    {"output", "reasoning", "reasoning_content", "summary", "thinking", "tool_calls"});
constexpr auto kMediaTypes = std::to_array<std::string_view>(
    {"audio", "audio_embeds", "audio_url", "document", "file", "image", "image_embeds", "image_pil",
     "image_url", "input_audio", "input_file", "input_image", "input_video", "video", "video_url"});
// The same where the type comes after them, or is missing.
constexpr auto kMediaMembers = std::to_array<std::string_view>(
    {"audio", "audio_url", "file", "file_data", "file_id", "image", "image_embeds", "image_pil",
     "image_url", "input_audio", "source", "video", "video_url"});

template <size_t N>
bool IsIn(const std::array<std::string_view, N>& sorted, std::string_view word) {
  return std::ranges::binary_search(sorted, word);
}

// Appends the texts of JSON values. Functions return false where the text ends: at a medium, at the
// limit, or where the JSON is invalid.
class TextWalk {
 public:
  TextWalk(std::string& text, bool skips_billing) : text_(text), skips_billing_(skips_billing) {}

  // In objects of kParts the members of messages have their meaning; in those of kVerbatim, which
  // are schemas and arguments, the names of the members are text as well.
  enum class Manner : uint8_t { kParts, kVerbatim };
  bool Append(std::string_view value, Manner manner) {
    if (value.empty()) return true;
    const std::string_view seen = value.substr(0, PromptTextReader::kMostRead - read_);
    read_ += seen.size();
    at_ = seen.data();
    end_ = at_ + seen.size();
    text_ += kTurn;
    return Value(manner, 0);
  }

 private:
  static constexpr unsigned kDeepest = 64;

  bool full() const { return text_.size() >= PromptTextReader::kMostText; }
  bool Peek(char c) const { return at_ != end_ && *at_ == c; }
  bool Take(char c) { return Peek(c) && (++at_, true); }
  void SkipSpace() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  bool Value(Manner manner, unsigned depth);
  bool Array(Manner manner, unsigned depth);
  bool Object(Manner manner, unsigned depth);
  bool Member(std::string_view key, Manner manner, unsigned depth);
  bool Part(std::string_view key, unsigned depth);
  bool Text(Manner manner);
  bool Escape();
  bool SkipBilling();
  bool Scalar(Manner manner);
  // Between its quotes, with its escapes.
  bool String(std::string_view& raw);
  // A number, true, false or null.
  bool Word(std::string_view& word);
  bool Type();
  bool Skip();

  std::string& text_;
  const bool skips_billing_;
  size_t read_ = 0;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
};

bool TextWalk::Value(Manner manner, unsigned depth) {
  SkipSpace();
  if (at_ == end_ || full() || depth > kDeepest) return false;
  switch (*at_) {
    case '"':
      return Text(manner);
    case '[':
      return Array(manner, depth);
    case '{':
      return Object(manner, depth);
    default:
      return Scalar(manner);
  }
}

bool TextWalk::Array(Manner manner, unsigned depth) {
  ++at_;
  SkipSpace();
  if (Take(']')) return true;
  for (;;) {
    if (!Value(manner, depth + 1)) return false;
    SkipSpace();
    if (Take(']')) return true;
    if (!Take(',')) return false;
  }
}

bool TextWalk::Object(Manner manner, unsigned depth) {
  ++at_;
  SkipSpace();
  if (Take('}')) return true;
  for (;;) {
    SkipSpace();
    std::string_view key;
    if (!String(key)) return false;
    SkipSpace();
    if (!Take(':')) return false;
    SkipSpace();
    if (!Member(key, manner, depth)) return false;
    SkipSpace();
    if (Take('}')) return true;
    if (!Take(',')) return false;
  }
}

bool TextWalk::Member(std::string_view key, Manner manner, unsigned depth) {
  if (manner == Manner::kParts) return Part(key, depth);
  if (key == "cache_control") return Skip();
  text_ += key.substr(0, PromptTextReader::kMostText);
  text_ += ':';
  return Value(manner, depth + 1);
}

// A text and a list with this text alone are the same to engines, so types are not text.
bool TextWalk::Part(std::string_view key, unsigned depth) {
  if (key == "type") return Type();
  if (Peek('n')) return Skip();  // null
  // These are nearly all.
  if (key == "text" || key == "content") return Value(Manner::kParts, depth + 1);
  if (IsIn(kNotRendered, key)) return Skip();
  if (IsIn(kMediaMembers, key)) return false;
  if (IsIn(kWithParts, key)) return Value(Manner::kParts, depth + 1);
  if (key == "role") text_ += kTurn;
  if (!Value(Manner::kVerbatim, depth + 1)) return false;
  text_ += kEnd;
  return true;
}

bool TextWalk::Type() {
  std::string_view type;
  if (!Peek('"')) return Skip();
  return String(type) && !IsIn(kMediaTypes, type);
}

bool TextWalk::String(std::string_view& raw) {
  if (!Take('"')) return false;
  const char* const begin = at_;
  for (;;) {
    at_ = FindStringByte(at_, end_);
    if (at_ == end_) return false;
    if (*at_ == '"') break;
    at_ += std::min<ptrdiff_t>(*at_ == '\\' ? 2 : 1, end_ - at_);
  }
  raw = {begin, at_};
  ++at_;
  return true;
}

bool TextWalk::Text(Manner manner) {
  ++at_;
  if (manner == Manner::kParts && skips_billing_ && !SkipBilling()) return false;
  for (;;) {
    const char* const stop = FindStringByte(at_, end_);
    text_.append(at_, stop);
    at_ = stop;
    if (at_ == end_ || full()) return false;
    if (*at_ == '"') break;
    if (!Escape()) return false;
  }
  ++at_;
  if (manner == Manner::kVerbatim) text_ += kEnd;
  return true;
}

bool TextWalk::Escape() {
  if (end_ - at_ < 2 || *at_ != '\\') return false;
  // Those of line breaks and quotes are by far the most.
  const char c = at_[1];
  if (c != 'u') {
    text_ += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    at_ += 2;
    return true;
  }
  const std::string_view rest(at_, end_);
  constexpr size_t kOne = 6;
  const bool pair = rest.substr(2).starts_with('d') || rest.substr(2).starts_with('D');
  const std::string_view raw = rest.substr(0, pair ? 2 * kOne : kOne);
  at_ += raw.size();
  return AppendJsonText(raw, text_);
}

// The header's line, which may be all of the text.
bool TextWalk::SkipBilling() {
  if (!std::string_view(at_, end_).starts_with(kBillingHeader)) return true;
  for (;;) {
    at_ = FindStringByte(at_, end_);
    if (end_ - at_ < 2) return false;
    if (*at_ == '"') return true;
    const bool line = at_[0] == '\\' && at_[1] == 'n';
    at_ += 2;
    if (line) return true;
  }
}

bool TextWalk::Word(std::string_view& word) {
  const std::string_view rest(at_, end_);
  const auto ends = [](char c) {
    return c <= ' ' ? c >= 0 : c == ',' || c == ':' || c == ']' || c == '}';
  };
  word = {rest.begin(), std::ranges::find_if(rest, ends)};
  at_ += word.size();
  return !word.empty();
}

bool TextWalk::Scalar(Manner manner) {
  std::string_view word;
  if (!Word(word)) return false;
  if (manner == Manner::kParts && word == "null") return true;
  text_ += word.substr(0, 64);
  text_ += kEnd;
  return true;
}

// Whatever it is, without looking into it.
bool TextWalk::Skip() {
  size_t open = 0;
  do {
    SkipSpace();
    if (at_ == end_) return false;
    std::string_view text;
    switch (*at_) {
      case '"':
        if (!String(text)) return false;
        break;
      case '[':
      case '{':
        ++open;
        ++at_;
        continue;
      case ']':
      case '}':
        if (open == 0) return false;
        --open;
        ++at_;
        break;
      case ',':
      case ':':
        if (open == 0) return false;
        ++at_;
        continue;
      default:
        if (!Word(text)) return false;
    }
  } while (open > 0);
  return true;
}

bool AppendAll(TextWalk& walk, const PromptFields& parts) {
  constexpr auto kParts = TextWalk::Manner::kParts;
  constexpr auto kVerbatim = TextWalk::Manner::kVerbatim;
  return walk.Append(parts.chat_template, kVerbatim) &&
         walk.Append(parts.chat_template_kwargs, kVerbatim) &&
         walk.Append(parts.reasoning_effort, kVerbatim) && walk.Append(parts.tools, kVerbatim) &&
         walk.Append(parts.documents, kVerbatim) && walk.Append(parts.system, kParts) &&
         walk.Append(parts.instructions, kParts) && walk.Append(parts.messages, kParts) &&
         walk.Append(parts.input, kParts) && walk.Append(parts.prompt, kParts);
}

}  // namespace

bool PromptTextReader::Read(const PromptFields& parts, EngineKind engine,
                            std::vector<TokenId>& values) {
  text_.clear();
  text_.reserve(std::min(BytesOf(parts), kMostText));
  // SGLang renders the header: there it is a part of the prefix.
  TextWalk walk(text_, engine != EngineKind::kSglang);
  bool whole = AppendAll(walk, parts);
  if (text_.size() > kMostText) {
    text_.resize(kMostText);
    whole = false;
  }
  values.resize(text_.size() / sizeof(TokenId));
  if (!values.empty()) std::memcpy(values.data(), text_.data(), values.size() * sizeof(TokenId));
  return whole;
}

}  // namespace fathom
