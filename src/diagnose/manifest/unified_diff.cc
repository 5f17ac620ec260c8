#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "diagnose/findings/secrets.h"
#include "diagnose/manifest/edit.h"

namespace fathom {
namespace {

constexpr size_t kContext = 3;
// Beyond this many pairs of lines, what lies between the first and the last difference is one
// change.
constexpr size_t kMaxPairs = 4'000'000;

// Each with its line end, so that a last line without one differs from one with it.
std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

// Lines [before, before_end) are replaced by lines [after, after_end).
struct Change {
  size_t before = 0;
  size_t before_end = 0;
  size_t after = 0;
  size_t after_end = 0;
};

// Lines that no diff may show; empty: all may be shown.
struct Hidden {
  std::vector<bool> before;
  std::vector<bool> after;

  static bool Any(const std::vector<bool>& lines, size_t from, size_t to) {
    for (size_t i = from; i < std::min(to, lines.size()); ++i) {
      if (lines[i]) return true;
    }
    return false;
  }
};

class Comparison {
 public:
  Comparison(std::vector<std::string_view> before, std::vector<std::string_view> after,
             Hidden hidden)
      : before_(std::move(before)), after_(std::move(after)), hidden_(std::move(hidden)) {}

  // A line that is taken out or put in cannot be left out.
  bool ChangesHidden(const std::vector<Change>& changes) const {
    return std::ranges::any_of(changes, [&](const Change& change) {
      return Hidden::Any(hidden_.before, change.before, change.before_end) ||
             Hidden::Any(hidden_.after, change.after, change.after_end);
    });
  }

  std::vector<Change> Changes() {
    size_t head = 0;
    while (head < std::min(before_.size(), after_.size()) && before_[head] == after_[head]) ++head;
    size_t tail = 0;
    while (tail < std::min(before_.size(), after_.size()) - head &&
           before_[before_.size() - 1 - tail] == after_[after_.size() - 1 - tail]) {
      ++tail;
    }
    const Change middle{head, before_.size() - tail, head, after_.size() - tail};
    const size_t rows = middle.before_end - head;
    const size_t columns = middle.after_end - head;
    if (rows == 0 && columns == 0) return {};
    if (rows == 0 || columns == 0 || rows > kMaxPairs / columns) return {middle};
    return Split(middle);
  }

  std::string Print(std::string_view name, const std::vector<Change>& changes) const {
    std::string out;
    for (size_t i = 0; i < changes.size();) {
      size_t last = i;
      while (last + 1 < changes.size() && Together(changes[last], changes[last + 1])) ++last;
      // A name with a space ends where a tab does.
      const std::string_view end = name.contains(' ') ? "\t" : "";
      if (out.empty()) out = fmt::format("--- a/{}{}\n+++ b/{}{}\n", name, end, name, end);
      PrintHunk(std::span(changes).subspan(i, last - i + 1), out);
      i = last + 1;
    }
    return out;
  }

 private:
  bool Together(const Change& one, const Change& next) const {
    return next.before - one.before_end <= 2 * kContext &&
           !Hidden::Any(hidden_.before, one.before_end, next.before);
  }

  // How many lines of context a hunk has in front and behind.
  struct Margins {
    size_t front = 0;
    size_t behind = 0;
  };

  Margins MarginsOf(size_t start, size_t end) const {
    const Margins most{std::min(kContext, start), std::min(kContext, before_.size() - end)};
    Margins margins;
    while (margins.front < most.front &&
           !Hidden::Any(hidden_.before, start - margins.front - 1, start - margins.front)) {
      ++margins.front;
    }
    while (margins.behind < most.behind &&
           !Hidden::Any(hidden_.before, end + margins.behind, end + margins.behind + 1)) {
      ++margins.behind;
    }
    // With less in front than behind, patch takes a hunk for the beginning of the file; with less
    // behind, for its end.
    if (margins.front < most.front || margins.behind < most.behind) {
      margins.front = margins.behind = std::min(margins.front, margins.behind);
    }
    return margins;
  }

  // By the longest common subsequence of the lines in between.
  std::vector<Change> Split(const Change& middle) const {
    const size_t rows = middle.before_end - middle.before;
    const size_t columns = middle.after_end - middle.after;
    std::vector<uint32_t> common((rows + 1) * (columns + 1));
    const auto at = [&](size_t row, size_t column) -> uint32_t& {
      return common[row * (columns + 1) + column];
    };
    for (size_t row = rows; row-- > 0;) {
      for (size_t column = columns; column-- > 0;) {
        at(row, column) = Same(middle, row, column)
                              ? at(row + 1, column + 1) + 1
                              : std::max(at(row + 1, column), at(row, column + 1));
      }
    }
    std::vector<Change> changes;
    size_t row = 0;
    size_t column = 0;
    while (row < rows || column < columns) {
      if (row < rows && column < columns && Same(middle, row, column)) {
        ++row;
        ++column;
        continue;
      }
      Change change{middle.before + row, 0, middle.after + column, 0};
      while ((row < rows || column < columns) &&
             !(row < rows && column < columns && Same(middle, row, column))) {
        const bool remove =
            column == columns || (row < rows && at(row + 1, column) >= at(row, column + 1));
        ++(remove ? row : column);
      }
      change.before_end = middle.before + row;
      change.after_end = middle.after + column;
      changes.push_back(change);
    }
    return changes;
  }

  bool Same(const Change& middle, size_t row, size_t column) const {
    return before_[middle.before + row] == after_[middle.after + column];
  }

  void PrintHunk(std::span<const Change> changes, std::string& out) const {
    const Margins margins = MarginsOf(changes.front().before, changes.back().before_end);
    const size_t start = changes.front().before - margins.front;
    const size_t end = changes.back().before_end + margins.behind;
    const size_t after_start = changes.front().after - (changes.front().before - start);
    const size_t after_end = changes.back().after_end + (end - changes.back().before_end);
    out += fmt::format("@@ -{} +{} @@\n", Range(start, end), Range(after_start, after_end));
    size_t at = start;
    for (const Change& change : changes) {
      for (; at < change.before; ++at) PrintLine(' ', before_[at], out);
      for (; at < change.before_end; ++at) PrintLine('-', before_[at], out);
      for (size_t i = change.after; i < change.after_end; ++i) PrintLine('+', after_[i], out);
    }
    for (; at < end; ++at) PrintLine(' ', before_[at], out);
  }

  // An empty range names the line in front of it.
  static std::string Range(size_t start, size_t end) {
    const size_t first = start == end ? start : start + 1;
    return end - start == 1 ? fmt::format("{}", first) : fmt::format("{},{}", first, end - start);
  }

  static void PrintLine(char sign, std::string_view line, std::string& out) {
    out.push_back(sign);
    out.append(line);
    if (!line.ends_with('\n')) out.append("\n\\ No newline at end of file\n");
  }

  const std::vector<std::string_view> before_;
  const std::vector<std::string_view> after_;
  const Hidden hidden_;
};

// Names that would begin a line of their own, or that patch reads in another way.
bool IsNameForPatch(std::string_view name) {
  return std::ranges::none_of(
      name, [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '"' || c == '\\'; });
}

// For a shell.
std::string ShellQuoted(std::string_view folder) {
  std::string quoted = "'";
  for (const char c : folder) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string DiffOf(const SourceFile& file, std::string_view after, Hidden hidden) {
  const std::string& name = file.patch_name.empty() ? file.name : file.patch_name;
  if (!IsNameForPatch(name) || !IsNameForPatch(file.patch_folder)) return {};
  Comparison comparison(LinesOf(file.text), LinesOf(after), std::move(hidden));
  const std::vector<Change> changes = comparison.Changes();
  if (changes.empty() || comparison.ChangesHidden(changes)) return {};
  std::string diff = comparison.Print(name, changes);
  if (!file.patch_folder.empty()) {
    diff.insert(0, fmt::format("# patch -p1 -d {}\n", ShellQuoted(file.patch_folder)));
  }
  return diff;
}

}  // namespace

std::string UnifiedDiff(const SourceFile& file, std::string_view after) {
  return DiffOf(file, after, {});
}

std::string DiffToPassOn(const SourceFile& file, std::string_view after) {
  return DiffOf(file, after, {SecretLines(file.text), SecretLines(after)});
}

}  // namespace fathom
