// Which commands does a shell text run, word by word?
//
// Reads what deployments use: quotes, continuation lines, comments, lists (; && || | &),
// assignments in front of a command, redirections and here-documents. Nothing is run and nothing is
// expanded: $NAME and $(...) stay as they are.
//
// Memory  At most kMaxWords words.
// Errors  kCaller: more words than that. A quote that is never closed ends with the text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diagnose/manifest/passage.h"
#include "diagnose/manifest/yaml_tree.h"

namespace fathom {

struct ShellWord {
  std::string text;  // without quotes
  FilePlace place;
  std::optional<Span> span;        // with its quotes
  std::optional<Passage> passage;  // the text by itself

  // What stands behind `start` as a setting of that name.
  Written From(std::string name, size_t start) const;
};

// A scalar of YAML as one word of a command line.
ShellWord WordOf(const YamlNode& scalar);

struct SimpleCommand {
  std::vector<ShellWord> assignments;  // NAME=value
  std::vector<ShellWord> words;
  std::string output;  // the file that it writes to; empty: none
  size_t end = 0;      // in the file, behind its last word
};

// cat > path <<EOF
struct HereDocument {
  std::string path;
  Passage text;
};

struct ShellText {
  static constexpr size_t kMaxWords = 50'000;

  std::vector<SimpleCommand> commands;
  std::vector<HereDocument> documents;
};

Result<ShellText> ReadShell(const Passage& passage);

}  // namespace fathom
