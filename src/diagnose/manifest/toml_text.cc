#include "diagnose/manifest/toml_text.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace fathom {
namespace {

bool IsBare(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

class TomlReader {
 public:
  explicit TomlReader(const Passage& passage) : passage_(passage), text_(passage.text()) {}

  Result<std::vector<Written>> Read() {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    for (SkipLines(); at_ < text_.size(); SkipLines()) {
      if (text_[at_] == '[') {
        TRY_VOID(ReadHeader());
      } else {
        TRY_VOID(ReadPair(table_, 0));
      }
      TRY_VOID(ReadLineEnd());
    }
    return std::move(entries_);
  }

 private:
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool At(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  std::unexpected<Error> Bad(std::string_view why) const {
    return Fail(Blame::kCaller, "{}:{}: bad TOML: {}", ToText(passage_.PlaceOf(at_)),
                passage_.ColumnOf(at_), why);
  }

  void SkipBlanks() {
    while (Peek() == ' ' || Peek() == '\t') ++at_;
  }

  // Blanks, comments and line ends.
  void SkipLines() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (std::string_view(" \t\r\n").contains(text_[at_])) {
        ++at_;
      } else {
        return;
      }
    }
  }

  Result<> ReadLineEnd() {
    SkipBlanks();
    if (at_ == text_.size() || std::string_view("#\r\n").contains(text_[at_])) return {};
    return Bad("unexpected text after the value");
  }

  Result<> ReadHeader() {
    const std::string_view close = At("[[") ? "]]" : "]";
    at_ += close.size();
    TRY(table_, ReadKey(""));
    if (!At(close)) return Bad("the table name is not closed");
    at_ += close.size();
    return {};
  }

  // name = value
  Result<> ReadPair(const std::string& prefix, size_t depth) {
    TRY(const std::string name, ReadKey(prefix));
    if (Peek() != '=') return Bad("a key without a value");
    ++at_;
    SkipBlanks();
    return ReadValue(name, depth);
  }

  // a."b c".d, behind what it stands in.
  Result<std::string> ReadKey(const std::string& prefix) {
    std::string name = prefix;
    for (bool more = true; more;) {
      if (!name.empty()) name.push_back('.');
      SkipBlanks();
      TRY(const std::string part, ReadKeyPart());
      name += part;
      if (name.size() > kMaxTomlName) return Bad("a name that is too long");
      SkipBlanks();
      more = Peek() == '.';
      if (more) ++at_;
    }
    return name;
  }

  Result<std::string> ReadKeyPart() {
    if (Peek() == '"' || Peek() == '\'') return ReadString();
    const size_t start = at_;
    while (IsBare(Peek())) ++at_;
    if (at_ == start) return Bad("a key was expected");
    return std::string(text_.substr(start, at_ - start));
  }

  Result<> ReadValue(const std::string& name, size_t depth) {
    if (depth > kMaxTomlDepth) return Bad("nested too deep");
    if (Peek() == '[') return ReadArray(name, depth);
    if (Peek() == '{') return ReadTable(name, depth);
    const size_t start = at_;
    TRY(std::string value, ReadScalar());
    if (entries_.size() == kMaxTomlEntries) return Bad("too many values in one file");
    entries_.push_back(
        {name, std::move(value), passage_.PlaceOf(start), passage_.SpanOf(start, at_ - start)});
    return {};
  }

  Result<> ReadArray(const std::string& name, size_t depth) {
    ++at_;
    for (SkipLines(); Peek() != ']'; SkipLines()) {
      TRY_VOID(ReadValue(name, depth + 1));
      SkipLines();
      if (Peek() == ',') {
        ++at_;
      } else if (Peek() != ']') {
        return Bad("an array that is never closed");
      }
    }
    ++at_;
    return {};
  }

  Result<> ReadTable(const std::string& name, size_t depth) {
    ++at_;
    for (SkipLines(); Peek() != '}'; SkipLines()) {
      TRY_VOID(ReadPair(name, depth + 1));
      SkipLines();
      if (Peek() == ',') {
        ++at_;
      } else if (Peek() != '}') {
        return Bad("a table that is never closed");
      }
    }
    ++at_;
    return {};
  }

  Result<std::string> ReadScalar() {
    if (At("\"\"\"") || At("'''")) return ReadLongString();
    if (Peek() == '"' || Peek() == '\'') return ReadString();
    const size_t start = at_;
    while (IsBare(Peek()) || Peek() == '.' || Peek() == '+' || Peek() == ':') ++at_;
    if (at_ == start) return Bad("a value was expected");
    std::string value(text_.substr(start, at_ - start));
    // 1_000
    if (std::isdigit(static_cast<unsigned char>(value[0])) != 0) std::erase(value, '_');
    return value;
  }

  Result<std::string> ReadLongString() {
    const std::string_view quotes = text_.substr(at_, 3);
    const size_t end = text_.find(quotes, at_ + 3);
    if (end == text_.npos) return Bad("a quote that is never closed");
    std::string value(text_.substr(at_ + 3, end - at_ - 3));
    at_ = end + 3;
    return value;
  }

  Result<std::string> ReadString() {
    const size_t start = at_;
    const char quote = text_[at_++];
    std::string value;
    while (Peek() != quote) {
      if (at_ >= text_.size() || Peek() == '\n') {
        at_ = start;
        return Bad("a quote that is never closed");
      }
      if (quote == '"' && Peek() == '\\' && at_ + 1 < text_.size()) ++at_;
      value.push_back(text_[at_++]);
    }
    ++at_;
    return value;
  }

  const Passage& passage_;
  const std::string_view text_;
  size_t at_ = 0;
  std::string table_;
  std::vector<Written> entries_;
};

}  // namespace

Result<std::vector<Written>> ReadToml(const Passage& passage) { return TomlReader(passage).Read(); }

}  // namespace fathom
