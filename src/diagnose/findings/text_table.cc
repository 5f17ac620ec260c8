#include "diagnose/findings/text_table.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "diagnose/findings/report_words.h"
#include "diagnose/findings/shown_text.h"

namespace fathom {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kLeast = 8;  // columns of a column that gave way
constexpr size_t kNarrowest = 40;

class Layout {
 public:
  Layout(const Table& table, size_t indent, const TextStyle& style)
      : table_(table),
        indent_(indent),
        style_(style),
        room_(std::max(style.width, kNarrowest) - indent),
        widths_(NaturalWidths()) {
    for (size_t i = 0; i < widths_.size(); ++i) right_.push_back(IsNumeric(table, i));
  }

  std::string Write() && {
    if (!Shrink()) {
      WriteLists();
      return std::move(out_);
    }
    if (std::ranges::any_of(table_.columns, [](const auto& name) { return !name.empty(); })) {
      WriteHeader();
    }
    for (const auto& row : table_.rows) WriteRow(row);
    return std::move(out_);
  }

 private:
  std::vector<size_t> NaturalWidths() const {
    std::vector<size_t> widths;
    for (size_t i = 0; i < table_.columns.size(); ++i) {
      size_t width = ColumnsOf(OneLine(table_.columns[i]));
      for (const auto& row : table_.rows) {
        width = std::max(width, ColumnsOf(OneLine(CellAt(row, i).text)));
      }
      widths.push_back(std::min(width, room_));
    }
    return widths;
  }

  size_t Total() const {
    return std::accumulate(widths_.begin(), widths_.end(), size_t{0}) +
           kGap * (std::max<size_t>(widths_.size(), 1) - 1);
  }

  // Whether it fits in the end.
  bool Shrink() {
    while (Total() > room_) {
      const auto widest = std::ranges::max_element(widths_);
      if (*widest <= kLeast) return false;
      --*widest;
    }
    return true;
  }

  void WriteHeader() {
    std::vector<Cell> names;
    for (const std::string& name : table_.columns) names.push_back({name, Tone::kFaint});
    WriteRow(names);
    std::string rule;
    for (size_t i = 0; i < Total(); ++i) rule += "─";
    out_.append(indent_, ' ').append(Paint(rule, Ink::kFaint, style_)) += '\n';
  }

  void WriteRow(const std::vector<Cell>& row) {
    std::vector<std::vector<std::string>> cells;
    size_t height = 1;
    for (size_t i = 0; i < widths_.size(); ++i) {
      cells.push_back(
          Wrap(OneLine(CellAt(row, i).text), std::max<size_t>(widths_[i], 1), LongWords::kBreak));
      height = std::max(height, cells.back().size());
    }
    for (size_t line = 0; line < height; ++line) WriteLine(row, cells, line);
  }

  void WriteLine(const std::vector<Cell>& row, const std::vector<std::vector<std::string>>& cells,
                 size_t line) {
    std::string text(indent_, ' ');
    size_t owed = 0;  // spaces, written only if something follows
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string_view piece =
          line < cells[i].size() ? std::string_view(cells[i][line]) : std::string_view();
      const size_t columns = ColumnsOf(piece);
      const size_t rest = widths_[i] - std::min(columns, widths_[i]);
      if (!piece.empty()) {
        text.append(owed + (right_[i] ? rest : 0), ' ');
        text += Paint(piece, InkOf(CellAt(row, i).tone), style_);
        owed = right_[i] ? 0 : rest;
      } else {
        owed += widths_[i];
      }
      owed += kGap;
    }
    out_ += text += '\n';
  }

  void WriteLists() {
    bool first = true;
    for (const auto& row : table_.rows) {
      if (!std::exchange(first, false)) out_ += '\n';
      for (size_t i = 0; i < table_.columns.size(); ++i) {
        const Cell& cell = CellAt(row, i);
        if (!cell.text.empty()) WriteEntry(table_.columns[i], cell);
      }
    }
  }

  void WriteEntry(std::string_view name, const Cell& cell) {
    const std::string text = OneLine(name) + (name.empty() ? "" : ": ") + OneLine(cell.text);
    for (const std::string& line : Wrap(text, room_, LongWords::kBreak)) {
      out_.append(indent_, ' ').append(Paint(line, InkOf(cell.tone), style_)) += '\n';
    }
  }

  const Table& table_;
  const size_t indent_;
  const TextStyle style_;
  const size_t room_;
  std::vector<size_t> widths_;
  std::vector<bool> right_;
  std::string out_;
};

}  // namespace

std::string TextTable(const Table& table, size_t indent, const TextStyle& style) {
  return Layout(table, indent, style).Write();
}

}  // namespace fathom
