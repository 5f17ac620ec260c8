#include "diagnose/findings/report_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "diagnose/findings/html_style.h"
#include "diagnose/findings/html_text.h"
#include "diagnose/findings/plot_svg.h"
#include "diagnose/findings/report_words.h"
#include "diagnose/findings/shown_text.h"

namespace fathom {
namespace {

std::string_view ClassOf(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "";
    case Tone::kGood:
      return "good";
    case Tone::kDoubtful:
      return "doubtful";
    case Tone::kBad:
      return "bad";
    case Tone::kFaint:
      return "faint";
  }
  CHECK(false);
}

std::string_view ClassOfDiff(std::string_view line) {
  if (line.starts_with("+++") || line.starts_with("---") || line.starts_with("@@")) return "at";
  if (line.starts_with('+')) return "add";
  return line.starts_with('-') ? "del" : "";
}

class HtmlReport {
 public:
  explicit HtmlReport(const Report& report) : report_(report) {}

  std::string Write() && {
    WriteHead();
    WriteTop();
    WriteFindings();
    for (const Section& section : report_.sections) WriteSection(section);
    WriteFixes();
    Add("<h2 id=\"appendix\">Appendix</h2>");
    WriteTable(LookedAtTable(report_));
    WriteTable(SentTable(report_));
    Add("<footer>Written by fathom doctor {}. It changes nothing: apply the fixes above "
        "yourself.</footer>\n</main>\n</body>\n</html>",
        HtmlText(report_.version));
    return std::move(out_);
  }

 private:
  template <class... Args>
  void Add(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
    out_ += '\n';
  }

  // <tag class="name">text</tag>, unless there is no text.
  void AddText(std::string_view tag, std::string_view name, std::string_view text) {
    if (!text.empty()) Add("<{0} class=\"{1}\">{2}</{0}>", tag, name, HtmlText(text));
  }

  void WriteHead() {
    Add("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" "
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"referrer\" content=\"no-referrer\">\n"
        "<title>Fathom doctor: {}</title>\n<style>{}</style>\n</head>\n<body>\n<main>",
        HtmlText(report_.verdict), kHtmlStyle);
  }

  void WriteTop() {
    const bool healthy = report_.findings.empty();
    Add("<p class=\"eyebrow\"><b>Fathom doctor</b> <span>{}</span> <span>version {}</span></p>",
        HtmlText(report_.time), HtmlText(report_.version));
    Add("<h1>{}</h1>", HtmlText(report_.verdict));
    Add("<nav><span class=\"badge {}\">{}</span>",
        healthy ? "healthy" : Name(report_.findings.front().severity), CountOf(report_.findings));
    if (!healthy) Add("<a href=\"#findings\">Findings</a>");
    for (const Section& section : report_.sections) {
      Add("<a href=\"#{}\">{}</a>", Name(section.part), Heading(section.part));
    }
    Add("<a href=\"#fixes\">{}</a> <a href=\"#appendix\">Appendix</a></nav>", kFixesHeading);
  }

  void WriteFindings() {
    if (report_.findings.empty()) return;
    Add("<h2 id=\"findings\">Findings</h2>");
    for (size_t i = 0; i < report_.findings.size(); ++i) WriteFinding(i + 1, report_.findings[i]);
  }

  void WriteFinding(size_t number, const Finding& finding) {
    const FindingKind& kind = KindOf(finding.id);
    Add("<article class=\"{}\" id=\"finding-{}\">\n<header><span class=\"number\">{}</span>"
        "<h3>{} <span class=\"badge\">{}</span></h3>",
        Name(finding.severity), number, number, HtmlText(kind.title), Badge(finding.severity));
    AddText("p", "subject mono", SubjectOf(finding));
    Add("</header>");
    AddText("p", "message", finding.message);
    AddText("p", "why", finding.why);
    if (!finding.evidence.empty()) {
      Add("<p class=\"label\">Evidence</p>");
      WriteList("evidence", finding.evidence);
    }
    for (size_t i = 0; i < finding.fixes.size(); ++i) WriteFix(i == 0, finding.fixes[i]);
    WriteMore(finding);
    Add("</article>");
  }

  void WriteFix(bool first, const Fix& fix) {
    Add("<section class=\"fix\">\n<p class=\"label\">{}</p>", first ? "Fix" : "Or");
    AddText("p", "what", fix.what);
    WriteCode(CodeLines(fix.setting), [](std::string_view) { return std::string_view(); });
    if (const auto diff = DiffLines(fix.diff); !diff.empty()) {
      Add("<details{}><summary>The change, as a diff</summary>", first ? " open" : "");
      WriteCode(diff, ClassOfDiff);
      Add("</details>");
    }
    if (!fix.cost.empty() || !fix.verify.empty()) {
      Add("<dl>");
      WriteTerm("Cost", fix.cost);
      WriteTerm("Verify", fix.verify);
      Add("</dl>");
    }
    Add("</section>");
  }

  void WriteTerm(std::string_view term, std::string_view text) {
    if (!text.empty()) Add("<dt>{}</dt><dd>{}</dd>", term, HtmlText(text));
  }

  template <class ClassOfLine>
  void WriteCode(const std::vector<std::string>& lines, ClassOfLine&& class_of) {
    if (lines.empty()) return;
    out_ += "<pre>";
    for (const std::string& line : lines) {
      out_ += fmt::format("<span class=\"{}\">{}</span>", class_of(line), HtmlCode(line));
    }
    Add("</pre>");
  }

  void WriteMore(const Finding& finding) {
    const std::string gain = GainOf(finding);
    std::string text = gain.empty() ? "" : fmt::format("Expected gain: <b>{}</b>", gain);
    if (!gain.empty() && !finding.gain_basis.empty()) {
      text += fmt::format(" ({})", HtmlText(finding.gain_basis));
    }
    if (!text.empty()) text += "<br>";
    Add("<p class=\"more\">{}<code>{}</code> · <code>{}</code></p>", text, Name(finding.id),
        HtmlText(report_.docs.To(PageOf(finding.id))));
  }

  void WriteSection(const Section& section) {
    Add("<h2 id=\"{}\">{}</h2>", Name(section.part), Heading(section.part));
    if (!section.lines.empty()) WriteList("lines", section.lines);
    for (const Table& table : section.tables) WriteTable(table);
    if (!section.plots.empty()) {
      Add("<div class=\"plots\">");
      for (const Plot& plot : section.plots) WritePlot(plot);
      Add("</div>");
    }
    WriteMissing(section.missing);
    if (section.lines.empty() && section.tables.empty() && section.plots.empty() &&
        section.missing.empty()) {
      Add("<p class=\"quiet\">No data.</p>");
    }
  }

  void WriteMissing(const std::vector<std::string>& missing) {
    if (missing.empty()) return;
    Add("<div class=\"missing\"><b>Not seen</b>");
    WriteList("lines", missing);
    Add("</div>");
  }

  void WriteFixes() {
    Add("<h2 id=\"fixes\">{}</h2>", kFixesHeading);
    const Table fixes = FixTable(report_);
    if (fixes.rows.empty()) Add("<p class=\"quiet\">Nothing to fix.</p>");
    WriteTable(fixes);
  }

  void WriteTable(const Table& table) {
    if (table.rows.empty()) return;
    if (!table.title.empty()) Add("<h4>{}</h4>", HtmlText(table.title));
    Add("<div class=\"scroll\"><table>\n<thead><tr>");
    std::vector<std::string_view> sides;
    for (size_t i = 0; i < table.columns.size(); ++i) {
      sides.emplace_back(IsNumeric(table, i) ? "num" : "");
      Add("<th class=\"{}\">{}</th>", sides.back(), HtmlText(table.columns[i]));
    }
    Add("</tr></thead>\n<tbody>");
    for (const auto& row : table.rows) WriteRow(row, sides);
    Add("</tbody></table></div>");
  }

  void WriteRow(const std::vector<Cell>& row, const std::vector<std::string_view>& sides) {
    out_ += "<tr>";
    for (size_t i = 0; i < sides.size(); ++i) {
      const Cell& cell = CellAt(row, i);
      out_ += fmt::format("<td class=\"{} {}\">{}</td>", sides[i], ClassOf(cell.tone),
                          HtmlText(cell.text));
    }
    Add("</tr>");
  }

  void WritePlot(const Plot& plot) {
    Add("<figure>");
    AddText("p", "plot-title", plot.title);
    if (plot.series.size() > 1) WriteLegend(plot);
    out_ += PlotSvg(plot);
    AddText("figcaption", "", plot.caption);
    Add("</figure>");
  }

  void WriteLegend(const Plot& plot) {
    out_ += "<ul class=\"legend\">";
    for (size_t i = 0; i < plot.series.size(); ++i) {
      out_ += fmt::format(
          "<li><svg viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"{}\" width=\"10\" "
          "height=\"10\" rx=\"2\"/></svg>{}</li>",
          SeriesClass(plot, i), HtmlText(plot.series[i].name));
    }
    Add("</ul>");
  }

  void WriteList(std::string_view name, const std::vector<std::string>& items) {
    Add("<ul class=\"{}\">", name);
    for (const std::string& item : items) Add("<li>{}</li>", HtmlText(item));
    Add("</ul>");
  }

  const Report& report_;
  std::string out_;
};

}  // namespace

std::string ReportHtml(const Report& report) { return HtmlReport(report).Write(); }

}  // namespace fathom
