// How must a file be changed so that a program has another setting?
//
// Edits keep everything else as it is: comments, order, indentation, line ends.
//
// Errors  Nothing (nullopt) where the form of the file leaves no safe way; the caller then says in
//         words what to change.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/manifest/program.h"
#include "diagnose/manifest/source_file.h"

namespace fathom {

struct TextEdit {
  std::string file;
  Span span;         // what is replaced; of length 0: inserted in front of offset
  std::string text;  // what stands there afterwards

  bool operator==(const TextEdit&) const = default;
};

// Sets what is written already, or adds it. `comment` is put beside it where the language has
// comments; empty: none. `source` is the file that program.place names.
std::optional<TextEdit> SetVariable(const SourceFile& source, const Program& program,
                                    std::string_view name, std::string_view value,
                                    std::string_view comment);
// "--block-size", "32".
std::optional<TextEdit> SetFlag(const SourceFile& source, const Program& program,
                                std::string_view name, std::string_view value);
// "kv_cache_config.tokens_per_block", "32".
std::optional<TextEdit> SetKey(const SourceFile& source, const Program& program,
                               std::string_view dotted, std::string_view value,
                               std::string_view comment);
// Another value in its place, quoted as the old one was or as it needs to be.
std::optional<TextEdit> Replace(const SourceFile& source, const Written& written,
                                std::string_view value);

// The text after all edits of that file; overlapping edits after the first are left out.
std::string Apply(const SourceFile& source, std::span<const TextEdit> edits);

// A unified diff of the file and another text, for `patch -p1`, with three lines around each
// change; empty where they are equal. It applies in the folder that its first line names, or
// without such a line in the current one.
std::string UnifiedDiff(const SourceFile& file, std::string_view after);
// The same for reports, which are forwarded: it applies as well, and shows no line that has a
// secret in it. A hunk beside such a line has fewer lines around it; empty where a changed line has
// one.
std::string DiffToPassOn(const SourceFile& file, std::string_view after);

}  // namespace fathom
