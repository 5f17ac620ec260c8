#include "diagnose/manifest/passage.h"

#include <algorithm>
#include <utility>

namespace fathom {

Passage::Passage(const SourceFile& file) : file_(&file), text_(file.text) {
  LineStarts starts = {0};
  for (size_t at = text_.find('\n'); at != text_.npos; at = text_.find('\n', at + 1)) {
    starts.push_back(at + 1);
  }
  lines_ = std::make_shared<const LineStarts>(std::move(starts));
}

Passage Passage::Part(size_t offset, size_t length) const {
  Passage part = *this;
  part.text_ = text_.substr(std::min(offset, text_.size()), length);
  return part;
}

Passage Passage::Rewritten(std::string text, const std::vector<size_t>& origins) const {
  Rewriting rewriting{std::move(text), {}};
  rewriting.origins.reserve(origins.size());
  for (const size_t origin : origins) rewriting.origins.push_back(OffsetOf(origin));
  Passage rewritten = *this;
  rewritten.rewriting_ = std::make_shared<const Rewriting>(std::move(rewriting));
  rewritten.text_ = rewritten.rewriting_->text;
  return rewritten;
}

size_t Passage::OffsetOf(size_t at) const {
  const std::string_view whole = verbatim() ? std::string_view(file_->text) : rewriting_->text;
  const size_t index = static_cast<size_t>(text_.data() - whole.data()) + at;
  if (verbatim()) return index;
  const std::vector<size_t>& origins = rewriting_->origins;
  if (origins.empty()) return 0;
  return index < origins.size() ? origins[index] : origins.back() + 1;
}

FilePlace Passage::PlaceOf(size_t at) const {
  const auto after = std::ranges::upper_bound(*lines_, OffsetOf(at));
  return FilePlace{file_->name, static_cast<uint32_t>(after - lines_->begin())};
}

size_t Passage::ColumnOf(size_t at) const {
  const size_t offset = OffsetOf(at);
  return offset - *std::prev(std::ranges::upper_bound(*lines_, offset)) + 1;
}

std::optional<Span> Passage::SpanOf(size_t at, size_t length) const {
  const size_t offset = OffsetOf(at);
  if (length == 0 && verbatim()) return Span{offset, 0};
  if (length == 0) return std::nullopt;
  if (OffsetOf(at + length - 1) - offset != length - 1) return std::nullopt;
  return Span{offset, length};
}

}  // namespace fathom
