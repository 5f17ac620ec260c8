#include "diagnose/findings/finding_json.h"

#include <gmock/gmock.h>

#include "testing/sample_report.h"

namespace fathom {
namespace {

Json Parsed(const Finding& finding) {
  JsonWriter writer;
  AppendFinding(writer, finding, DocsLinks());
  auto json = Json::Parse(writer.text());
  EXPECT_TRUE(json) << writer.text();
  return json ? *json : Json();
}

std::string TextAt(const Json& json, std::string_view key) {
  const Json* found = json.Find(key);
  return found && found->string() ? *found->string() : "(none)";
}

TEST(FindingJson, HasEverythingThatTheFindingSays) {
  const Finding finding = SampleMismatch();
  const Json json = Parsed(finding);
  EXPECT_EQ(TextAt(json, "id"), "block-size-mismatch");
  EXPECT_EQ(TextAt(json, "severity"), "error");
  EXPECT_EQ(TextAt(json, "title"), "Router and engine use different KV block sizes");
  EXPECT_EQ(TextAt(json, "part"), "configuration");
  EXPECT_EQ(TextAt(json, "subject"), finding.subject);
  EXPECT_EQ(TextAt(json, "message"), finding.message);
  EXPECT_EQ(TextAt(json, "why"), finding.why);
  EXPECT_EQ(TextAt(json, "file"), "agg_router.yaml");
  EXPECT_EQ(json.Find("line")->unsigned_integer(), 9u);
  EXPECT_EQ(TextAt(json, "fix"), finding.fixes[0].what);
  EXPECT_EQ(json.Find("gain")->number(), 0.62);
  EXPECT_EQ(TextAt(json, "gain_basis"), finding.gain_basis);
  EXPECT_EQ(TextAt(json, "docs"), "fathom docs block-size-mismatch");
  ASSERT_EQ(json.Find("evidence")->array()->size(), finding.evidence.size());
  EXPECT_EQ(*(*json.Find("evidence")->array())[3].string(), finding.evidence[3]);
}

TEST(FindingJson, HasEveryFixWhole) {
  const Finding finding = SampleMismatch();
  const Json json = Parsed(finding);
  const Json::Array& fixes = *json.Find("fixes")->array();
  ASSERT_EQ(fixes.size(), finding.fixes.size());
  for (size_t i = 0; i < fixes.size(); ++i) {
    const Fix fix{TextAt(fixes[i], "what"), TextAt(fixes[i], "setting"), TextAt(fixes[i], "diff"),
                  TextAt(fixes[i], "cost"), TextAt(fixes[i], "verify")};
    EXPECT_EQ(fix, finding.fixes[i]);
  }
}

TEST(FindingJson, HasAFileOnlyWhereThereIsAPlace) {
  const Json json = Parsed(SampleChurn());
  EXPECT_EQ(json.Find("file"), nullptr);
  EXPECT_EQ(json.Find("line"), nullptr);
}

TEST(FindingJson, HasAnEmptyFixWhereThereIsNone) {
  const Json json = Parsed(MakeFinding(FindingId::kUnhealthy, "worker", "down"));
  EXPECT_EQ(TextAt(json, "fix"), "");
  EXPECT_TRUE(json.Find("fixes")->array()->empty());
}

}  // namespace
}  // namespace fathom
