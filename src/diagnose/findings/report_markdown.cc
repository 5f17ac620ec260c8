#include "diagnose/findings/report_markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/findings/report_words.h"
#include "diagnose/findings/shown_text.h"

namespace fathom {
namespace {

bool IsWordPart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// An underscore inside a word formats nothing; DYN_ROUTER_MODE stays readable.
bool FormatsNothing(std::string_view text, size_t at) {
  return text[at] == '_' && at > 0 && at + 1 < text.size() && IsWordPart(text[at - 1]) &&
         IsWordPart(text[at + 1]);
}

// What would make a list or a heading at the beginning of a line.
size_t MarkAtStart(std::string_view text) {
  if (text.empty()) return std::string_view::npos;
  if (std::string_view("-+=").contains(text.front())) return 0;
  const size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return std::string_view::npos;
  const bool lists = text[digits] == '.' || text[digits] == ')';
  const bool alone = digits + 1 == text.size() || text[digits + 1] == ' ';
  return lists && alone ? digits : std::string_view::npos;
}

std::string Escaped(std::string_view raw) {
  const std::string text = OneLine(raw);
  const size_t mark = MarkAtStart(text);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      const bool special = std::string_view("\\`*_[]|~$#!").contains(c);
      if (i == mark || (special && !FormatsNothing(text, i))) out += '\\';
      out += c;
    }
  }
  return out;
}

// A fence that is longer than any in the lines.
std::string FenceFor(const std::vector<std::string>& lines) {
  size_t longest = 2;
  for (const std::string& line : lines) {
    size_t run = 0;
    for (const char c : line) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  }
  return std::string(longest + 1, '`');
}

class MarkdownReport {
 public:
  explicit MarkdownReport(const Report& report) : report_(report) {}

  std::string Write() && {
    out_ += fmt::format("# Fathom doctor\n\n**{}**\n\n", Escaped(report_.verdict));
    out_ += fmt::format("{} · {} · fathom {}\n", CountOf(report_.findings), Escaped(report_.time),
                        Escaped(report_.version));
    if (!report_.findings.empty()) out_ += "\n## Findings\n";
    for (size_t i = 0; i < report_.findings.size(); ++i) WriteFinding(i + 1, report_.findings[i]);
    for (const Section& section : report_.sections) WriteSection(section);
    out_ += fmt::format("\n## {}\n", kFixesHeading);
    const Table fixes = FixTable(report_);
    if (fixes.rows.empty()) out_ += "\nNothing to fix.\n";
    WriteTable(fixes);
    out_ += "\n## Appendix\n";
    WriteTable(LookedAtTable(report_));
    WriteTable(SentTable(report_));
    return std::move(out_);
  }

 private:
  void WriteFinding(size_t number, const Finding& finding) {
    const FindingKind& kind = KindOf(finding.id);
    out_ += fmt::format("\n### {}. {}: {}\n", number, Badge(finding.severity), kind.title);
    WriteParagraph("", SubjectOf(finding));
    WriteParagraph("", finding.message);
    WriteParagraph("Why", finding.why);
    if (!finding.evidence.empty()) out_ += "\n**Evidence**\n\n";
    for (const std::string& sentence : finding.evidence) WriteItem(sentence);
    for (size_t i = 0; i < finding.fixes.size(); ++i) {
      WriteFix(i == 0 ? "Fix" : "Or", finding.fixes[i]);
    }
    const std::string gain = GainOf(finding);
    const std::string& basis = finding.gain_basis;
    WriteParagraph("Gain",
                   gain.empty() || basis.empty() ? gain : fmt::format("{} ({})", gain, basis));
    out_ +=
        fmt::format("\n**More.** `{}` (`{}`)\n", report_.docs.To(PageOf(finding.id)), kind.name);
  }

  void WriteFix(std::string_view label, const Fix& fix) {
    WriteParagraph(label, fix.what);
    WriteCode("", CodeLines(fix.setting));
    WriteCode("diff", DiffLines(fix.diff));
    WriteParagraph("Cost", fix.cost);
    WriteParagraph("Verify", fix.verify);
  }

  void WriteCode(std::string_view language, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    const std::string fence = FenceFor(lines);
    out_ += fmt::format("\n{}{}\n", fence, language);
    for (const std::string& line : lines) out_.append(line) += '\n';
    out_.append(fence) += '\n';
  }

  void WriteSection(const Section& section) {
    out_ += fmt::format("\n## {}\n", Heading(section.part));
    if (!section.lines.empty()) out_ += '\n';
    for (const std::string& line : section.lines) WriteItem(line);
    for (const Table& table : section.tables) WriteTable(table);
    if (!section.plots.empty()) out_ += '\n';
    for (const Plot& plot : section.plots) {
      WriteItem(plot.caption.empty() ? plot.title : plot.title + ": " + plot.caption);
    }
    if (!section.missing.empty()) out_ += "\n**Not seen**\n\n";
    for (const std::string& what : section.missing) WriteItem(what);
  }

  void WriteTable(const Table& table) {
    if (table.rows.empty()) return;
    if (!table.title.empty()) out_ += fmt::format("\n**{}**\n", Escaped(table.title));
    out_ += "\n|";
    for (const std::string& name : table.columns) out_ += fmt::format(" {} |", Escaped(name));
    out_ += "\n|";
    for (size_t i = 0; i < table.columns.size(); ++i) {
      out_ += IsNumeric(table, i) ? " ---: |" : " --- |";
    }
    for (const auto& row : table.rows) WriteRow(row, table.columns.size());
    out_ += '\n';
  }

  void WriteRow(const std::vector<Cell>& row, size_t columns) {
    out_ += "\n|";
    for (size_t i = 0; i < columns; ++i) {
      const Cell& cell = CellAt(row, i);
      const std::string text = Escaped(cell.text);
      const bool strong = cell.tone == Tone::kBad && !text.empty();
      out_ += fmt::format(" {} |", strong ? fmt::format("**{}**", text) : text);
    }
  }

  void WriteItem(std::string_view text) { out_ += fmt::format("- {}\n", Escaped(text)); }

  void WriteParagraph(std::string_view label, std::string_view text) {
    if (text.empty()) return;
    out_ += '\n';
    if (!label.empty()) out_ += fmt::format("**{}.** ", label);
    out_.append(Escaped(text)) += '\n';
  }

  const Report& report_;
  std::string out_;
};

}  // namespace

std::string ReportMarkdown(const Report& report) { return MarkdownReport(report).Write(); }

}  // namespace fathom
