#include "diagnose/findings/finding_json.h"

namespace fathom {
namespace {

void AppendFix(JsonWriter& json, const Fix& fix) {
  json.BeginObject().Key("what").String(fix.what).Key("setting").String(fix.setting);
  json.Key("diff").String(fix.diff).Key("cost").String(fix.cost);
  json.Key("verify").String(fix.verify).EndObject();
}

void AppendFixes(JsonWriter& json, const std::vector<Fix>& fixes) {
  json.Key("fix").String(fixes.empty() ? "" : fixes.front().what);
  json.Key("fixes").BeginArray();
  for (const Fix& fix : fixes) AppendFix(json, fix);
  json.EndArray();
}

}  // namespace

void AppendFinding(JsonWriter& json, const Finding& finding, const DocsLinks& docs) {
  const FindingKind& kind = KindOf(finding.id);
  json.BeginObject().Key("id").String(kind.name);
  json.Key("severity").String(Name(finding.severity));
  json.Key("title").String(kind.title).Key("part").String(Name(kind.part));
  json.Key("subject").String(finding.subject).Key("message").String(finding.message);
  json.Key("why").String(finding.why).Key("evidence").BeginArray();
  for (const std::string& sentence : finding.evidence) json.String(sentence);
  json.EndArray();
  if (!finding.place.file.empty()) {
    json.Key("file").String(finding.place.file).Key("line").Unsigned(finding.place.line);
  }
  AppendFixes(json, finding.fixes);
  json.Key("gain").Number(finding.gain).Key("gain_basis").String(finding.gain_basis);
  json.Key("docs").String(docs.To(PageOf(finding.id))).EndObject();
}

}  // namespace fathom
