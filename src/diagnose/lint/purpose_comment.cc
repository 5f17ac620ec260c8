#include "diagnose/lint/purpose_comment.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace fathom {
namespace {

constexpr std::string_view kMark = "fathom-lint:";
constexpr std::string_view kWords = "wrong on purpose";
constexpr size_t kMaxProblems = 16;  // of one file

using Lines = std::vector<std::string_view>;

Lines LinesOf(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool IsComment(std::string_view trimmed) {
  return trimmed.starts_with('#') || trimmed.starts_with("<!--");
}

bool IsSeparator(std::string_view line) { return line.starts_with("---"); }

bool IsContent(std::string_view line) {
  const std::string_view trimmed = Trim(line);
  return !trimmed.empty() && !IsComment(trimmed) && !IsSeparator(line);
}

size_t IndentOf(std::string_view line) {
  const size_t indent = line.find_first_not_of(" \t");
  return indent == std::string_view::npos ? line.size() : indent;
}

// Where a comment with our mark begins in that line.
std::optional<size_t> FindComment(std::string_view line) {
  const size_t mark = line.find(kMark);
  if (mark == std::string_view::npos) return std::nullopt;
  const std::string_view before = Trim(line.substr(0, mark));
  const bool html = before.ends_with("<!--");
  if (!html && !before.ends_with('#')) return std::nullopt;
  const size_t begin = line.rfind(html ? '<' : '#', mark);
  const bool apart = begin == 0 || line[begin - 1] == ' ' || line[begin - 1] == '\t';
  return apart ? std::optional(begin) : std::nullopt;
}

uint32_t EndOfFence(const Lines& lines, size_t opening) {
  const std::string_view fence = Trim(lines[opening]).substr(0, 3);
  for (size_t i = opening + 1; i < lines.size(); ++i) {
    if (Trim(lines[i]).starts_with(fence)) return static_cast<uint32_t>(i + 1);
  }
  return static_cast<uint32_t>(lines.size());
}

// Everything that is indented under the line, and the lines that it goes on in.
uint32_t EndOfNode(const Lines& lines, size_t head) {
  const size_t indent = IndentOf(lines[head]);
  size_t last = head;
  for (size_t i = head + 1; i < lines.size(); ++i) {
    if (IsSeparator(lines[i])) break;
    if (!IsContent(lines[i])) continue;
    const bool continued = Trim(lines[i - 1]).ends_with('\\');
    if (!continued && IndentOf(lines[i]) <= indent) break;
    last = i;
  }
  return static_cast<uint32_t>(last + 1);
}

uint32_t EndOfDocument(const Lines& lines, size_t head) {
  size_t i = head;
  while (i < lines.size() && !IsSeparator(lines[i])) ++i;
  return static_cast<uint32_t>(i);
}

bool BeginsDocument(const Lines& lines, size_t comment) {
  for (size_t i = comment; i-- > 0;) {
    if (IsSeparator(lines[i])) return true;
    if (IsContent(lines[i])) return false;
  }
  return true;
}

bool BeginsFile(const Lines& lines, size_t comment) {
  return std::none_of(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(comment),
                      [](std::string_view line) { return IsContent(line); });
}

// The last line that a comment on a line of its own covers.
uint32_t EndOfScope(const Lines& lines, size_t comment) {
  const bool html = Trim(lines[comment]).starts_with("<!--");
  size_t next = comment + 1;
  while (next < lines.size() && !IsContent(lines[next])) ++next;
  if (next == lines.size()) return static_cast<uint32_t>(lines.size());
  const std::string_view head = Trim(lines[next]);
  if (head.starts_with("```") || head.starts_with("~~~")) {
    return html ? EndOfFence(lines, next) : static_cast<uint32_t>(next);
  }
  return BeginsDocument(lines, comment) ? EndOfDocument(lines, next) : EndOfNode(lines, next);
}

Result<std::vector<FindingId>> ReadIds(std::string_view comment) {
  std::string_view rest = Trim(comment.substr(comment.find(kMark) + kMark.size()));
  if (const size_t end = rest.find("-->"); end != std::string_view::npos)
    rest = rest.substr(0, end);
  if (!rest.starts_with(kWords)) {
    return Fail(Blame::kCaller, "'{}' must be followed by '{}'", kMark, kWords);
  }
  rest.remove_prefix(kWords.size());
  rest = rest.substr(0, rest.find('('));
  std::vector<FindingId> ids;
  for (const std::string_view name : SplitAny(rest, ":, \t\r")) {
    const auto id = FindingNamed(name);
    if (!id) return Fail(Blame::kCaller, "'{}' is not a rule", name.substr(0, 64));
    ids.push_back(*id);
  }
  return ids;
}

}  // namespace

PurposeComments::PurposeComments(const SourceFile& file) {
  if (!file.text.contains(kMark)) return;
  const Lines lines = LinesOf(file.text);
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto begin = FindComment(lines[i]);
    if (!begin) continue;
    auto ids = ReadIds(lines[i].substr(*begin));
    const auto line = static_cast<uint32_t>(i + 1);
    if (!ids) {
      if (problems_.size() < kMaxProblems) {
        problems_.push_back(
            {file.name, fmt::format("{}:{}: {}", file.name, line, ids.error().what)});
      }
      continue;
    }
    const bool alone = Trim(lines[i].substr(0, *begin)).empty();
    const uint32_t last = !alone ? line : BeginsFile(lines, i) ? UINT32_MAX : EndOfScope(lines, i);
    const uint32_t first = last == UINT32_MAX ? 0 : line;
    comments_.push_back({first, last, std::move(*ids)});
  }
}

bool PurposeComments::Cover(const Finding& finding) const {
  return std::ranges::any_of(comments_, [&](const Comment& comment) {
    const bool there =
        comment.first_line <= finding.place.line && finding.place.line <= comment.last_line;
    return there &&
           (comment.ids.empty() || std::ranges::find(comment.ids, finding.id) != comment.ids.end());
  });
}

}  // namespace fathom
