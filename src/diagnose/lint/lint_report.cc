#include "diagnose/lint/lint_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/findings/finding_json.h"

namespace fathom {
namespace {

// Names and values come from files that anybody may have written.
std::string Harmless(std::string_view text) {
  std::string clean(text);
  std::ranges::replace_if(clean, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  // U+0080 to U+009F, which some terminals obey as well.
  for (size_t i = 0; i + 1 < clean.size(); ++i) {
    const auto next = static_cast<unsigned char>(clean[i + 1]);
    if (clean[i] == '\xc2' && next >= 0x80 && next < 0xa0) clean[i] = clean[i + 1] = '?';
  }
  return clean;
}

class Painter {
 public:
  explicit Painter(bool color) : color_(color) {}

  std::string operator()(std::string_view style, std::string_view text) const {
    return color_ ? fmt::format("\x1b[{}m{}\x1b[0m", style, text) : std::string(text);
  }

 private:
  const bool color_;
};

std::string_view StyleOf(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "1;31";
    case Severity::kWarning:
      return "1;33";
    default:
      return "1;36";
  }
}

void AppendLine(std::string& out, const Painter& paint, std::string_view label,
                std::string_view text) {
  if (text.empty()) return;
  out += fmt::format("    {} {}\n", paint("2", fmt::format("{:<5}", label)), Harmless(text));
}

void AppendFindingText(std::string& out, const Painter& paint, const Finding& finding,
                       const DocsLinks& docs) {
  const std::string place = Harmless(ToText(finding.place));
  out += fmt::format("{}: {}: {} {}\n", paint("1", place.empty() ? "-" : place),
                     paint(StyleOf(finding.severity), Name(finding.severity)),
                     Harmless(finding.message), paint("2", fmt::format("[{}]", Name(finding.id))));
  AppendLine(out, paint, "why:", finding.why);
  for (const std::string& sentence : finding.evidence) AppendLine(out, paint, "seen:", sentence);
  bool first = true;
  for (const Fix& fix : finding.fixes) {
    AppendLine(out, paint, first ? "fix:" : "or:", fix.what);
    first = false;
  }
  AppendLine(out, paint, "docs:", docs.To(PageOf(finding.id)));
  out += '\n';
}

std::string Count(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string Summary(const LintResult& result) {
  const auto errors = std::ranges::count(result.findings, Severity::kError,
                                         [](const auto& found) { return found.finding.severity; });
  const auto fixable = std::ranges::count_if(
      result.findings, [](const LintFinding& found) { return !found.edits.empty(); });
  std::string text = "no findings";
  if (!result.findings.empty()) {
    text = fmt::format("{} ({})", Count(result.findings.size() + result.left_out, "finding"),
                       Count(static_cast<uint64_t>(errors), "error"));
    if (fixable > 0) text += fmt::format("; --fix can fix {} of them", fixable);
  }
  if (result.left_out > 0) text += fmt::format("; {} are not shown", result.left_out);
  if (result.on_purpose > 0) {
    text += fmt::format("; {} wrong on purpose",
                        result.on_purpose == 1 ? std::string("1 finding is")
                                               : fmt::format("{} findings are", result.on_purpose));
  }
  if (!result.unread.empty())
    text += fmt::format("; {} with {}", "could not read everything",
                        Count(result.unread.size(), "problem"));
  return text + "\n";
}

}  // namespace

std::string LintText(const LintResult& result, bool color, const DocsLinks& docs) {
  const Painter paint(color);
  std::string out;
  for (const LintFinding& found : result.findings) {
    AppendFindingText(out, paint, found.finding, docs);
  }
  return out + Summary(result);
}

std::string LintJson(const LintResult& result, std::span<const std::string> fixed,
                     const DocsLinks& docs) {
  JsonWriter json;
  json.BeginObject().Key("findings").BeginArray();
  for (const LintFinding& found : result.findings) {
    AppendFinding(json, FitToPassOn(found.finding), docs);
  }
  json.EndArray().Key("unread").BeginArray();
  for (const UnreadFile& file : result.unread) {
    json.BeginObject()
        .Key("file")
        .String(file.name)
        .Key("problem")
        .String(file.problem)
        .EndObject();
  }
  json.EndArray().Key("suppressed").Unsigned(result.on_purpose);
  json.Key("left_out").Unsigned(result.left_out).Key("fixed").BeginArray();
  for (const std::string& name : fixed) json.String(name);
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

std::string ToText(const UnreadFile& file) {
  const bool named = file.name.empty() || file.problem.starts_with(file.name);
  return Harmless(named ? file.problem : fmt::format("{}: {}", file.name, file.problem));
}

}  // namespace fathom
