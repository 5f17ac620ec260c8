#include "diagnose/manifest/command_line.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace fathom {
namespace {

constexpr std::string_view kOperators = ";&|()<>\n";

bool IsName(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) return false;
  return std::ranges::all_of(
      text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

bool IsAssignment(const ShellWord& word) {
  const size_t equals = word.text.find('=');
  return equals != word.text.npos && IsName(std::string_view(word.text).substr(0, equals));
}

class ShellReader {
 public:
  explicit ShellReader(const Passage& passage) : passage_(passage), text_(passage.text()) {}

  Result<ShellText> Read() {
    while (at_ < text_.size()) {
      if (words_ > ShellText::kMaxWords) {
        return Fail(Blame::kCaller, "{}: a script of more than {} words",
                    ToText(passage_.PlaceOf(at_)), ShellText::kMaxWords);
      }
      Step();
    }
    EndCommand();
    return std::move(shell_);
  }

 private:
  struct Awaited {
    std::string delimiter;
    bool tabs = false;  // <<-: tabs in front of the delimiter do not count
  };

  char Peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void Step() {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '\\' && AtLineBreak(1)) {
      at_ = text_.find('\n', at_) + 1;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '<' || c == '>') {
      Redirect();
    } else if (kOperators.contains(c)) {
      ++at_;
      EndCommand();
      if (c == '\n') TakeDocuments();
    } else {
      AddWord(ReadWord());
    }
  }

  bool AtLineBreak(size_t ahead) const {
    return Peek(ahead) == '\n' || (Peek(ahead) == '\r' && Peek(ahead + 1) == '\n');
  }

  void AddWord(ShellWord word) {
    ++words_;
    const bool number = std::ranges::all_of(word.text, [](char c) { return c >= '0' && c <= '9'; });
    // 2>&1: the 2 belongs to the redirection.
    if (number && (Peek(0) == '<' || Peek(0) == '>')) return;
    if (command_.words.empty() && word.text == "$") return;  // a prompt
    command_.end = passage_.OffsetOf(at_ - 1) + 1;
    auto& list =
        command_.words.empty() && IsAssignment(word) ? command_.assignments : command_.words;
    list.push_back(std::move(word));
  }

  void Redirect() {
    if (text_.substr(at_).starts_with("<<") && Peek(2) != '<') {
      at_ += 2;
      const bool tabs = Peek(0) == '-';
      if (tabs) ++at_;
      SkipBlanks();
      awaited_.push_back({ReadWord().text, tabs});
      return;
    }
    const bool output = text_[at_] == '>';
    while (Peek(0) == '<' || Peek(0) == '>' || Peek(0) == '&') ++at_;
    SkipBlanks();
    ShellWord target = ReadWord();
    if (output && !target.text.empty()) command_.output = std::move(target.text);
  }

  void SkipBlanks() {
    while (Peek(0) == ' ' || Peek(0) == '\t') ++at_;
  }

  void EndCommand() {
    if (!awaited_.empty()) document_path_ = PathOfDocument();
    if (!command_.words.empty() || !command_.assignments.empty()) {
      shell_.commands.push_back(std::move(command_));
    }
    command_ = {};
  }

  // cat > PATH, or tee PATH.
  std::string PathOfDocument() const {
    if (!command_.output.empty()) return command_.output;
    const std::vector<ShellWord>& words = command_.words;
    return words.size() > 1 && words.front().text == "tee" ? words.back().text : std::string();
  }

  void TakeDocuments() {
    for (const Awaited& awaited : std::exchange(awaited_, {})) {
      const size_t start = at_;
      size_t end = text_.size();
      while (at_ < text_.size()) {
        const size_t line = at_;
        const size_t stop = std::min(text_.find('\n', at_), text_.size());
        at_ = std::min(stop + 1, text_.size());
        if (IsDelimiter(text_.substr(line, stop - line), awaited)) {
          end = line;
          break;
        }
      }
      shell_.documents.push_back({document_path_, passage_.Part(start, end - start)});
    }
  }

  // Blanks in front count as none: the whole script may stand further in, inside YAML.
  static bool IsDelimiter(std::string_view line, const Awaited& awaited) {
    const size_t first = line.find_first_not_of(awaited.tabs ? " \t" : " ");
    if (first == line.npos) return false;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line.substr(first) == awaited.delimiter;
  }

  ShellWord ReadWord() {
    const size_t start = at_;
    letters_.clear();
    origins_.clear();
    while (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(text_[at_])) &&
           !kOperators.contains(text_[at_])) {
      ReadPiece();
    }
    return Finish(start);
  }

  ShellWord Finish(size_t start) {
    ShellWord word;
    word.text = letters_;
    word.place = passage_.PlaceOf(start);
    word.span = passage_.SpanOf(start, at_ - start);
    word.passage = text_.substr(start, at_ - start) == letters_
                       ? passage_.Part(start, at_ - start)
                       : passage_.Rewritten(letters_, origins_);
    return word;
  }

  void ReadPiece() {
    const char c = text_[at_];
    if (c == '\'') {
      ReadSingleQuoted();
    } else if (c == '"') {
      ReadDoubleQuoted();
    } else if (c == '\\') {
      ReadEscaped();
    } else if (c == '$' && (Peek(1) == '(' || Peek(1) == '{')) {
      ReadExpansion();
    } else {
      Keep();
    }
  }

  void Keep() {
    letters_.push_back(text_[at_]);
    origins_.push_back(at_++);
  }

  void ReadSingleQuoted() {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '\'') Keep();
    ++at_;
    at_ = std::min(at_, text_.size());
  }

  void ReadDoubleQuoted() {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' && (AtLineBreak(1) || std::string_view("\"\\$`").contains(Peek(1)))) {
        ReadEscaped();
      } else {
        Keep();
      }
    }
    ++at_;
    at_ = std::min(at_, text_.size());
  }

  void ReadEscaped() {
    if (AtLineBreak(1)) {
      at_ = text_.find('\n', at_) + 1;
      return;
    }
    ++at_;
    if (at_ < text_.size()) Keep();
  }

  // $(...) and ${...} belong to the word with all that is in them.
  void ReadExpansion() {
    const char open = Peek(1);
    const char close = open == '(' ? ')' : '}';
    size_t depth = 0;
    Keep();
    while (at_ < text_.size()) {
      if (text_[at_] == open) ++depth;
      const bool last = text_[at_] == close && --depth == 0;
      Keep();
      if (last) return;
    }
  }

  const Passage& passage_;
  const std::string_view text_;
  size_t at_ = 0;
  size_t words_ = 0;
  ShellText shell_;
  SimpleCommand command_;
  std::vector<Awaited> awaited_;
  std::string document_path_;
  std::string letters_;          // of the word that is being read
  std::vector<size_t> origins_;  // of its letters
};

}  // namespace

Written ShellWord::From(std::string name, size_t start) const {
  Written written{std::move(name), text.substr(std::min(start, text.size())), place, std::nullopt};
  if (start == 0) {
    written.span = span;
  } else if (passage) {
    written.place = passage->PlaceOf(std::min(start, text.size()));
    written.span = passage->SpanOf(start, written.value.size());
  }
  return written;
}

ShellWord WordOf(const YamlNode& scalar) {
  return ShellWord{scalar.text, scalar.place(), scalar.span(), PassageOf(scalar)};
}

Result<ShellText> ReadShell(const Passage& passage) { return ShellReader(passage).Read(); }

}  // namespace fathom
