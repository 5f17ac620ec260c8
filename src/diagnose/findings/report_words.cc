#include "diagnose/findings/report_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fathom {
namespace {

std::string Counted(std::ptrdiff_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

// "2", "2b", "2c"; there are never as many as letters, and if there are, the last one stays.
std::string FixNumber(size_t finding, size_t fix) {
  if (fix == 0) return fmt::format("{}", finding + 1);
  return fmt::format("{}{}", finding + 1, static_cast<char>('a' + std::min<size_t>(fix, 25)));
}

// "16", "1,204", "0.9", "62 %", "80.0 GiB", "41 tokens/s".
bool IsNumber(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789,.+-"), text.size());
  if (digits == 0 || text.find_first_of("0123456789") >= digits) return false;
  std::string_view unit = text.substr(digits);
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  return unit.size() <= 8 && unit.find_first_of(" (0123456789") == std::string_view::npos;
}

bool SaysNothing(std::string_view text) { return text.empty() || text == "-" || text == "–"; }

}  // namespace

std::string Heading(Part part) {
  switch (part) {
    case Part::kConfiguration:
      return "1. Configuration";
    case Part::kSync:
      return "2. Sync";
    case Part::kMemory:
      return "3. Memory pressure";
  }
  CHECK(false);
}

std::string_view Badge(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "ERROR";
    case Severity::kWarning:
      return "WARNING";
    case Severity::kInfo:
      return "INFO";
  }
  CHECK(false);
}

std::string CountOf(const std::vector<Finding>& findings) {
  std::string out;
  for (const Severity severity : {Severity::kError, Severity::kWarning}) {
    const auto count = std::ranges::count(findings, severity, &Finding::severity);
    if (count > 0) out += (out.empty() ? "" : ", ") + Counted(count, Name(severity));
  }
  const auto notes = std::ranges::count(findings, Severity::kInfo, &Finding::severity);
  if (notes > 0) out += (out.empty() ? "" : ", ") + Counted(notes, "note");
  return out.empty() ? "no findings" : out;
}

std::string GainOf(const Finding& finding) {
  if (!(finding.gain > 0)) return "";  // nor a NaN
  const double percent = std::min(finding.gain, 1.0) * 100;
  if (percent < 1) return "under 1 % of possible reuse";
  return fmt::format("up to {:.0f} % of possible reuse", percent);
}

std::string SubjectOf(const Finding& finding) {
  const std::string place = ToText(finding.place);
  if (place.empty() || finding.subject == place) return finding.subject;
  return finding.subject.empty() ? place : fmt::format("{} ({})", finding.subject, place);
}

Table FixTable(const Report& report) {
  Table table{.title = "", .columns = {"#", "Fix", "Expected gain", "Cost"}, .rows = {}};
  for (size_t i = 0; i < report.findings.size(); ++i) {
    const Finding& finding = report.findings[i];
    for (size_t j = 0; j < finding.fixes.size(); ++j) {
      const Fix& fix = finding.fixes[j];
      table.rows.push_back({{FixNumber(i, j), Tone::kFaint},
                            {fix.what, Tone::kPlain},
                            {j == 0 ? GainOf(finding) : "", Tone::kPlain},
                            {fix.cost, Tone::kPlain}});
    }
  }
  return table;
}

Table LookedAtTable(const Report& report) {
  Table table{.title = "Looked at", .columns = {"", "Source", "Outcome"}, .rows = {}};
  for (const LookedAt& source : report.looked_at) {
    const Tone tone = source.seen ? Tone::kGood : Tone::kBad;
    table.rows.push_back({{source.seen ? "✓" : "✗", tone},
                          {source.what, Tone::kPlain},
                          {source.outcome, source.seen ? Tone::kPlain : Tone::kBad}});
  }
  return table;
}

Table SentTable(const Report& report) {
  const bool read_only = std::ranges::all_of(report.sent, [](const SentRequest& sent) {
    return sent.method == "GET" || sent.method == "HEAD";
  });
  Table table{.title = read_only ? "Sent, all of it read-only" : "Sent",
              .columns = {"Request", "", "Times"},
              .rows = {}};
  for (const SentRequest& sent : report.sent) {
    table.rows.push_back({{sent.method, Tone::kFaint},
                          {sent.target, Tone::kPlain},
                          {fmt::format("{}", sent.times), Tone::kPlain}});
  }
  return table;
}

bool IsNumeric(const Table& table, size_t column) {
  bool any = false;
  for (const auto& row : table.rows) {
    const std::string_view text = CellAt(row, column).text;
    if (SaysNothing(text)) continue;
    if (!IsNumber(text)) return false;
    any = true;
  }
  return any;
}

const Cell& CellAt(const std::vector<Cell>& row, size_t column) {
  static const Cell kEmpty;
  return column < row.size() ? row[column] : kEmpty;
}

}  // namespace fathom
