#include "metrics/exposition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "base/renamed.h"

namespace fathom {
namespace {

constexpr std::array<std::string_view, 3> kTypeNames = {"counter", "gauge", "histogram"};
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsLabelName(std::string_view name) {
  return !name.empty() && IsLetter(name[0]) && !name.starts_with("__") && name != "le" &&
         std::ranges::all_of(name, [](char c) { return IsLetter(c) || IsDigit(c); });
}

// Length of the well-formed UTF-8 sequence at the front of text, 0 if there is none.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) > 0x9f;
  const bool beyond = lead == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || beyond ? 0 : length;
}

// Backslashes and newlines in help; quotes too in label values.
std::string Escaped(std::string_view text, bool quotes) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    const char c = text[0];
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\\' || (quotes && c == '"')) {
      out.append("\\").append(1, c);
    } else {
      out += length == 0 ? kReplacement : text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string JoinLabels(const Labels& labels) {
  CheckLabelNames(labels);
  std::string out;
  for (const auto& [name, value] : labels) {
    if (!out.empty()) out += ',';
    out.append(name).append("=\"").append(Escaped(value, true)).append("\"");
  }
  return out;
}

void AppendSample(std::string& out, std::string_view name, std::string_view suffix,
                  std::string_view labels, double value) {
  out.append(name).append(suffix);
  if (!labels.empty()) out.append("{").append(labels).append("}");
  out.append(" ").append(Number(value)).append("\n");
}

std::string FormerHelp(const MetricFamily& family) {
  return fmt::format("Former name of {}; Fathom {} removes it", family.name,
                     RemovedIn(family.former.release));
}

}  // namespace

void CheckMetricName(std::string_view name) {
  const auto allowed = [](char c) { return IsLetter(c) || IsDigit(c) || c == ':'; };
  CHECK(!name.empty() && !IsDigit(name[0]) && std::ranges::all_of(name, allowed));
}

void CheckLabelNames(const Labels& labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    CHECK(IsLabelName(labels[i].first));
    for (size_t j = 0; j < i; ++j) CHECK(labels[i].first != labels[j].first);
  }
}

void CheckLabelsOf(const MetricFamily& family, const Labels& labels) {
  CHECK(labels.size() == family.labels().size());
  for (const MetricLabel& label : family.labels()) {
    CHECK(std::ranges::any_of(labels, [&](const auto& has) { return has.first == label.name; }));
  }
}

std::string_view Name(MetricType type) { return kTypeNames[static_cast<size_t>(type)]; }

void Exposition::Add(const MetricFamily& family, const Labels& labels, double value) {
  CHECK(family.type != MetricType::kHistogram);
  CheckLabelsOf(family, labels);
  const std::string joined = JoinLabels(labels);
  AppendSample(SamplesOf(family.name, family.help, family.type), family.name, "", joined, value);
  if (family.former.name.empty()) return;
  AppendSample(SamplesOf(family.former.name, FormerHelp(family), family.type), family.former.name,
               "", joined, value);
}

void Exposition::Add(const MetricFamily& family, const Labels& labels,
                     const HistogramSnapshot& snapshot) {
  CHECK(family.type == MetricType::kHistogram);
  CheckLabelsOf(family, labels);
  AddHistogram(family.name, family.help, labels, snapshot);
  if (family.former.name.empty()) return;
  AddHistogram(family.former.name, FormerHelp(family), labels, snapshot);
}

void Exposition::AddCounter(std::string_view name, std::string_view help, const Labels& labels,
                            double value) {
  AppendSample(SamplesOf(name, help, MetricType::kCounter), name, "", JoinLabels(labels), value);
}

void Exposition::AddGauge(std::string_view name, std::string_view help, const Labels& labels,
                          double value) {
  AppendSample(SamplesOf(name, help, MetricType::kGauge), name, "", JoinLabels(labels), value);
}

void Exposition::AddHistogram(std::string_view name, std::string_view help, const Labels& labels,
                              const HistogramSnapshot& snapshot) {
  CHECK(snapshot.cumulative.size() == snapshot.upper_bounds.size() + 1);
  std::string& out = SamplesOf(name, help, MetricType::kHistogram);
  const std::string own = JoinLabels(labels);
  const std::string_view comma = own.empty() ? "" : ",";
  for (size_t i = 0; i < snapshot.cumulative.size(); ++i) {
    const std::string bound =
        i < snapshot.upper_bounds.size() ? Number(snapshot.upper_bounds[i]) : "+Inf";
    AppendSample(out, name, "_bucket", fmt::format("{}{}le=\"{}\"", own, comma, bound),
                 static_cast<double>(snapshot.cumulative[i]));
  }
  AppendSample(out, name, "_sum", own, snapshot.sum);
  AppendSample(out, name, "_count", own, static_cast<double>(snapshot.count()));
}

std::string Exposition::Text() const {
  std::string out;
  for (const auto& [name, family] : families_) {
    fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} {}\n{}", name, family.help,
                   name, Name(family.type), family.samples);
  }
  return out;
}

std::string& Exposition::SamplesOf(std::string_view name, std::string_view help, MetricType type) {
  auto found = families_.find(name);
  if (found == families_.end()) {
    CheckMetricName(name);
    Family family{.type = type, .help = Escaped(help, false), .samples = {}};
    found = families_.emplace(std::string(name), std::move(family)).first;
  }
  CHECK(found->second.type == type);
  return found->second.samples;
}

}  // namespace fathom
