#include "diagnose/findings/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "diagnose/findings/report_words.h"
#include "diagnose/findings/shown_text.h"
#include "diagnose/findings/text_table.h"

namespace fathom {
namespace {

constexpr size_t kMostForProse = 100;  // longer lines are hard to read
constexpr size_t kNarrowestReport = 40;
constexpr size_t kIndent = 4;
constexpr size_t kLabel = 10;

Ink InkOfDiff(std::string_view line) {
  if (line.starts_with("+++") || line.starts_with("---")) return Ink::kStrong;
  if (line.starts_with('+')) return Ink::kGreen;
  if (line.starts_with('-')) return Ink::kRed;
  return line.starts_with("@@") ? Ink::kBlue : Ink::kPlain;
}

class TextReport {
 public:
  TextReport(const Report& report, const TextStyle& style)
      : report_(report),
        style_{style.color, std::max(style.width, kNarrowestReport)},
        prose_(std::min(style_.width, kMostForProse)) {}

  std::string Write() && {
    WriteTop();
    if (!report_.findings.empty()) WriteHeading("Findings");
    for (size_t i = 0; i < report_.findings.size(); ++i) {
      if (i > 0) out_ += '\n';
      WriteFinding(i + 1, report_.findings[i]);
    }
    for (const Section& section : report_.sections) WriteSection(section);
    WriteFixes();
    WriteHeading("Appendix");
    WriteTable(LookedAtTable(report_));
    WriteTable(SentTable(report_));
    return std::move(out_);
  }

 private:
  void WriteTop() {
    const std::string what = OneLine(fmt::format("Fathom doctor {}", report_.version));
    out_ += Paint(what, Ink::kStrong, style_);
    out_ += Paint(OneLine(" · " + report_.time).insert(0, " "), Ink::kFaint, style_) += "\n\n";
    const Ink ink =
        report_.findings.empty() ? Ink::kGreen : InkOf(report_.findings.front().severity);
    WriteWrapped(2, report_.verdict, ink);
    WriteWrapped(2, CountOf(report_.findings), Ink::kFaint);
  }

  void WriteHeading(std::string_view heading) {
    out_ += '\n';
    out_ += Paint(heading, Ink::kStrong, style_);
    std::string rule = " ";
    for (size_t i = ColumnsOf(heading) + 1; i < prose_; ++i) rule += "─";
    out_ += Paint(rule, Ink::kFaint, style_) += "\n\n";
  }

  void WriteFinding(size_t number, const Finding& finding) {
    const std::string front = fmt::format("{:>2}  {:<9} ", number, Badge(finding.severity));
    const auto title = Wrap(KindOf(finding.id).title, prose_ - front.size(), LongWords::kOverflow);
    out_ += Paint(front, InkOf(finding.severity), style_);
    for (size_t i = 0; i < title.size(); ++i) {
      if (i > 0) out_.append(front.size(), ' ');
      out_ += Paint(title[i], Ink::kStrong, style_) += '\n';
    }
    WriteWrapped(front.size(), SubjectOf(finding), Ink::kFaint);
    out_ += '\n';
    WriteWrapped(kIndent, finding.message, Ink::kPlain);
    out_ += '\n';
    WriteLabelled("Why", finding.why);
    WriteEvidence(finding.evidence);
    for (size_t i = 0; i < finding.fixes.size(); ++i) {
      WriteFix(i == 0 ? "Fix" : "Or", finding.fixes[i]);
    }
    StartBlock();
    WriteGain(finding);
    WriteLabelled("More",
                  fmt::format("{} ({})", report_.docs.To(PageOf(finding.id)), Name(finding.id)),
                  Ink::kFaint);
  }

  void WriteEvidence(const std::vector<std::string>& evidence) {
    for (size_t i = 0; i < evidence.size(); ++i) {
      WriteLabelled(i == 0 ? "Evidence" : "", "• " + evidence[i], Ink::kPlain, 2);
    }
  }

  void WriteFix(std::string_view label, const Fix& fix) {
    StartBlock();
    WriteLabelled(label, fix.what, Ink::kStrong);
    WriteCode(CodeLines(fix.setting), [](std::string_view) { return Ink::kBlue; });
    WriteCode(DiffLines(fix.diff), InkOfDiff);
    WriteLabelled("Cost", fix.cost);
    WriteLabelled("Verify", fix.verify);
  }

  template <class InkOfLine>
  void WriteCode(const std::vector<std::string>& lines, InkOfLine&& ink_of) {
    if (lines.empty()) return;
    StartBlock();
    for (const std::string& line : lines) {
      if (!line.empty()) out_.append(kIndent + kLabel + 2, ' ');
      out_ += Paint(line, ink_of(line), style_) += '\n';
    }
    out_ += '\n';
  }

  void WriteGain(const Finding& finding) {
    const std::string gain = GainOf(finding);
    if (gain.empty()) return;
    const std::string& basis = finding.gain_basis;
    WriteLabelled("Gain", basis.empty() ? gain : fmt::format("{} ({})", gain, basis));
  }

  void WriteSection(const Section& section) {
    WriteHeading(Heading(section.part));
    for (const std::string& line : section.lines) WriteItem(line);
    for (const Table& table : section.tables) WriteTable(table);
    WritePlots(section.plots);
    WriteMissing(section.missing);
    if (section.lines.empty() && section.tables.empty() && section.plots.empty() &&
        section.missing.empty()) {
      WriteWrapped(2, "No data.", Ink::kFaint);
    }
  }

  void WritePlots(const std::vector<Plot>& plots) {
    if (!plots.empty()) StartBlock();
    for (const Plot& plot : plots) {
      WriteItem(plot.caption.empty() ? plot.title : plot.title + ": " + plot.caption);
    }
  }

  void WriteMissing(const std::vector<std::string>& missing) {
    if (!missing.empty()) StartBlock();
    for (const std::string& what : missing) {
      WriteHanging("  not seen: ", OneLine(what), Ink::kFaint, 0);
    }
  }

  void WriteFixes() {
    WriteHeading(kFixesHeading);
    const Table fixes = FixTable(report_);
    if (fixes.rows.empty()) {
      WriteWrapped(2, "Nothing to fix.", Ink::kFaint);
    } else {
      out_ += TextTable(fixes, 2, {style_.color, prose_});
    }
  }

  void WriteTable(const Table& table) {
    if (table.rows.empty()) return;
    StartBlock();
    WriteWrapped(2, table.title, Ink::kStrong);
    out_ += TextTable(table, 2, style_);
  }

  // One empty line before what follows.
  void StartBlock() {
    if (!out_.ends_with("\n\n")) out_ += '\n';
  }

  void WriteItem(std::string_view text) { WriteHanging("  • ", OneLine(text), Ink::kPlain, 0); }

  void WriteWrapped(size_t indent, std::string_view text, Ink ink) {
    if (!text.empty()) WriteHanging(std::string(indent, ' '), OneLine(text), ink, 0);
  }

  void WriteLabelled(std::string_view label, std::string_view text, Ink ink = Ink::kPlain,
                     size_t hang = 0) {
    if (text.empty()) return;
    WriteHanging(fmt::format("{:{}}{:<{}}", "", kIndent, label, kLabel), OneLine(text), ink, hang);
  }

  // Lines after the first stand below the text, `hang` columns further in.
  void WriteHanging(std::string_view front, std::string_view text, Ink ink, size_t hang) {
    const size_t indent = ColumnsOf(front);
    const auto lines = Wrap(text, prose_ - indent - hang, LongWords::kOverflow);
    out_ += Paint(front, Ink::kFaint, style_);
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i > 0) out_.append(indent + hang, ' ');
      out_ += Paint(lines[i], ink, style_) += '\n';
    }
  }

  const Report& report_;
  const TextStyle style_;
  const size_t prose_;
  std::string out_;
};

}  // namespace

std::string ReportText(const Report& report, const TextStyle& style) {
  return TextReport(report, style).Write();
}

}  // namespace fathom
