// Where in its file does a piece of text stand?
//
// A manifest holds texts inside texts: an engine's YAML in a ConfigMap, a command line in an
// argument of `sh -c`, a fenced block of Markdown. A Passage is such a text together with where
// each of its bytes stands, so that whoever reads it can name lines of the file and change its
// bytes.
//
// Memory  A view of the file where the text stands there as it is; otherwise a copy with an offset
// per
//         byte. The SourceFile must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/findings/finding.h"
#include "diagnose/manifest/source_file.h"
#include "diagnose/manifest/written.h"

namespace fathom {

class Passage {
 public:
  // The whole file.
  explicit Passage(const SourceFile& file);

  // A part of it, as it stands.
  Passage Part(size_t offset, size_t length) const;
  // Another text made of its bytes: byte i was written at origins[i] of this passage.
  Passage Rewritten(std::string text, const std::vector<size_t>& origins) const;

  std::string_view text() const { return text_; }
  const SourceFile& file() const { return *file_; }
  // It stands in the file byte by byte, so that lines can be put between its lines.
  bool verbatim() const { return rewriting_ == nullptr; }

  // In the file; `at` may be the end of the text.
  size_t OffsetOf(size_t at) const;
  FilePlace PlaceOf(size_t at) const;
  // From 1, in bytes.
  size_t ColumnOf(size_t at) const;
  // Nothing where those bytes do not stand side by side in the file.
  std::optional<Span> SpanOf(size_t at, size_t length) const;

 private:
  struct Rewriting {
    std::string text;
    std::vector<size_t> origins;  // in the file
  };
  using LineStarts = std::vector<size_t>;

  const SourceFile* file_;
  std::shared_ptr<const LineStarts> lines_;
  std::shared_ptr<const Rewriting> rewriting_;
  std::string_view text_;
};

}  // namespace fathom
