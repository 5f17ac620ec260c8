#include "diagnose/findings/report_json.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "codec/json.h"
#include "diagnose/findings/finding_json.h"

namespace fathom {
namespace {

template <class Items, class Append>
void AppendArray(JsonWriter& json, std::string_view key, const Items& items, Append&& append) {
  json.Key(key).BeginArray();
  for (const auto& item : items) append(json, item);
  json.EndArray();
}

void AppendText(JsonWriter& json, const std::string& text) { json.String(text); }
void AppendNumber(JsonWriter& json, double number) { json.Number(number); }

void AppendRow(JsonWriter& json, const std::vector<Cell>& row) {
  json.BeginArray();
  for (const Cell& cell : row) json.String(cell.text);
  json.EndArray();
}

void AppendTable(JsonWriter& json, const Table& table) {
  json.BeginObject().Key("title").String(table.title);
  AppendArray(json, "columns", table.columns, AppendText);
  AppendArray(json, "rows", table.rows, AppendRow);
  json.EndObject();
}

void AppendSeries(JsonWriter& json, const Plot::Series& series) {
  json.BeginObject().Key("name").String(series.name);
  AppendArray(json, "x", series.x, AppendNumber);
  AppendArray(json, "y", series.y, AppendNumber);
  json.EndObject();
}

void AppendPlot(JsonWriter& json, const Plot& plot) {
  json.BeginObject().Key("kind").String(plot.kind == Plot::Kind::kBars ? "bars" : "lines");
  json.Key("title").String(plot.title).Key("x_label").String(plot.x_label);
  json.Key("y_label").String(plot.y_label);
  AppendArray(json, "categories", plot.categories, AppendText);
  AppendArray(json, "series", plot.series, AppendSeries);
  json.Key("caption").String(plot.caption).EndObject();
}

void AppendSection(JsonWriter& json, const Section& section) {
  json.BeginObject().Key("part").String(Name(section.part));
  AppendArray(json, "lines", section.lines, AppendText);
  AppendArray(json, "tables", section.tables, AppendTable);
  AppendArray(json, "plots", section.plots, AppendPlot);
  AppendArray(json, "missing", section.missing, AppendText);
  json.EndObject();
}

void AppendLookedAt(JsonWriter& json, const LookedAt& source) {
  json.BeginObject().Key("what").String(source.what).Key("seen").Bool(source.seen);
  json.Key("outcome").String(source.outcome).EndObject();
}

void AppendSent(JsonWriter& json, const SentRequest& sent) {
  json.BeginObject().Key("method").String(sent.method).Key("target").String(sent.target);
  json.Key("times").Unsigned(sent.times).EndObject();
}

std::string_view StatusOf(const Report& report) {
  if (!report.findings.empty()) return "findings";
  return std::ranges::all_of(report.looked_at, &LookedAt::seen) ? "healthy" : "unseen";
}

}  // namespace

std::string ReportJson(const Report& report) {
  JsonWriter json;
  json.BeginObject().Key("version").String(report.version).Key("time").String(report.time);
  json.Key("verdict").String(report.verdict);
  json.Key("status").String(StatusOf(report));
  AppendArray(json, "findings", report.findings, [&](JsonWriter& to, const Finding& finding) {
    AppendFinding(to, finding, report.docs);
  });
  AppendArray(json, "sections", report.sections, AppendSection);
  AppendArray(json, "looked_at", report.looked_at, AppendLookedAt);
  AppendArray(json, "sent", report.sent, AppendSent);
  json.EndObject();
  return json.Take() + '\n';
}

}  // namespace fathom
