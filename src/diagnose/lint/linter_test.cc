#include "diagnose/lint/linter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "base/file.h"
#include "diagnose/lint/fixed_files.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

fs::path Folder(std::string_view name) { return fs::path("tests/lint") / name; }

std::vector<std::string> FixturesIn(std::string_view folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(Folder(folder))) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

SourceFile Fixture(std::string_view folder, const std::string& name) {
  return {name, *ReadFile((Folder(folder) / name).string())};
}

LintResult LintOneText(std::string text, std::string name = "x.yaml") {
  return Lint(std::vector{SourceFile{std::move(name), std::move(text)}});
}

std::vector<std::string> IdsOf(const LintResult& result) {
  std::vector<std::string> ids;
  for (const LintFinding& found : result.findings) ids.emplace_back(Name(found.finding.id));
  return ids;
}

// The rule that a fixture is named after: "publisher-off-null.sh" is about publisher-off.
FindingId RuleOf(const std::string& name) {
  const FindingKind* longest = nullptr;
  for (const FindingKind& kind : Catalogue()) {
    if (name.starts_with(kind.name) && (!longest || kind.name.size() > longest->name.size())) {
      longest = &kind;
    }
  }
  if (longest == nullptr) ADD_FAILURE() << name << " is named after no rule";
  return longest == nullptr ? FindingId{} : longest->id;
}

std::string TestName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

class BadFixture : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, BadFixture, testing::ValuesIn(FixturesIn("bad")), TestName);

TEST_P(BadFixture, HasItsFindingFirstWithEverythingThatAReaderNeeds) {
  const LintResult result = Lint(std::vector{Fixture("bad", GetParam())});
  ASSERT_TRUE(result.unread.empty()) << result.unread[0].problem;
  ASSERT_FALSE(result.findings.empty());
  const Finding& finding = result.findings[0].finding;
  EXPECT_EQ(Name(finding.id), Name(RuleOf(GetParam())));
  EXPECT_EQ(finding.place.file, GetParam());
  EXPECT_GT(finding.place.line, 0);
  EXPECT_FALSE(finding.message.empty());
  EXPECT_FALSE(finding.why.empty());
  ASSERT_FALSE(finding.fixes.empty());
  EXPECT_FALSE(finding.fixes[0].what.empty());
  EXPECT_FALSE(finding.fixes[0].cost.empty());
  EXPECT_FALSE(finding.fixes[0].verify.empty());
}

TEST_P(BadFixture, IsWithoutItsFindingOnceItsEditsAreMade) {
  const std::vector files = {Fixture("bad", GetParam())};
  const LintResult before = Lint(files);
  const FixedFiles fixed = FixFiles(files);
  EXPECT_TRUE(fixed.left.unread.empty());
  for (const LintFinding& found : before.findings) {
    if (found.edits.empty()) continue;
    EXPECT_THAT(IdsOf(fixed.left), testing::Not(testing::Contains(Name(found.finding.id))))
        << fixed.files[0].text;
  }
  EXPECT_EQ(FixFiles(fixed.files).files[0].text, fixed.files[0].text);
}

class GoodFixture : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, GoodFixture, testing::ValuesIn(FixturesIn("good")), TestName);

TEST_P(GoodFixture, HasNoFindingAtAll) {
  const LintResult result = Lint(std::vector{Fixture("good", GetParam())});
  EXPECT_THAT(IdsOf(result), ElementsAre());
  EXPECT_TRUE(result.unread.empty());
  EXPECT_EQ(result.on_purpose, 0);
}

TEST(Linter, HasAGoodAndABadFixtureForEveryRule) {
  constexpr std::array kRules = {
      FindingId::kBlockSizeMismatch, FindingId::kBlockSizeConflict, FindingId::kBlockSizeMissing,
      FindingId::kPrefixCachingOff,  FindingId::kPublisherOff,      FindingId::kEventBufferOff,
      FindingId::kEndpointConnects,  FindingId::kPortCollision,     FindingId::kKvEventsUnused,
      FindingId::kRouterModeMissing, FindingId::kServiceHidesPods,  FindingId::kPageSizeOne,
      FindingId::kReplayMissing};
  for (const FindingId rule : kRules) {
    for (const char* folder : {"bad", "good"}) {
      EXPECT_TRUE(std::ranges::any_of(
          FixturesIn(folder),
          [&](const std::string& name) { return name.starts_with(Name(rule)); }))
          << folder << " " << Name(rule);
    }
  }
}

// --- the incident

TEST(Linter, OffersBothSidesOfTheMismatchThatTheExampleHad) {
  const LintResult result = Lint(std::vector{Fixture("bad", "block-size-mismatch.yaml")});
  ASSERT_FALSE(result.findings.empty());
  const Finding& finding = result.findings[0].finding;
  EXPECT_THAT(finding.message, testing::AllOf(HasSubstr("16"), HasSubstr("32")));
  EXPECT_THAT(finding.why, HasSubstr("0.9.0"));
  ASSERT_EQ(finding.fixes.size(), 2);
  EXPECT_THAT(finding.fixes[0].what, HasSubstr("DYN_KV_CACHE_BLOCK_SIZE"));
  EXPECT_THAT(finding.fixes[0].diff, HasSubstr("+        - name: DYN_KV_CACHE_BLOCK_SIZE\n"
                                               "+          value: \"32\"  # Must match "));
  EXPECT_THAT(finding.fixes[1].what, HasSubstr("tokens_per_block"));
}

TEST(Linter, FixesTheFragmentAsItsAuthorsDid) {
  const FixedFiles fixed = FixFiles({Fixture("bad", "block-size-missing.yaml")});
  EXPECT_THAT(fixed.files[0].text,
              HasSubstr("    - name: DYN_KV_CACHE_BLOCK_SIZE\n      value: \"32\""));
  EXPECT_TRUE(fixed.left.findings.empty());
}

// --- several files

TEST(Linter, FindsTheEnginesOfARouterInAnotherFile) {
  std::string text = Fixture("bad", "service-hides-pods.yaml").text;
  const size_t router = text.rfind("---\n");
  const LintResult result = Lint(std::vector{SourceFile{"engines.yaml", text.substr(0, router)},
                                             SourceFile{"fathom.yaml", text.substr(router)}});
  ASSERT_THAT(IdsOf(result), ElementsAre("service-hides-pods"));
  EXPECT_EQ(result.findings[0].finding.place.file, "fathom.yaml");
}

constexpr std::string_view kFrontend =
    "python3 -m dynamo.frontend --router-mode kv --kv-cache-block-size 16\n";
constexpr std::string_view kTrtllmWorker =
    "python3 -m dynamo.trtllm --model-path m --publish-events-and-metrics\n";

std::vector<std::string> IdsOfTwo(std::string first, std::string second) {
  return IdsOf(Lint(std::vector{SourceFile{std::move(first), std::string(kFrontend)},
                                SourceFile{std::move(second), std::string(kTrtllmWorker)}}));
}

TEST(Linter, TakesARouterAndEnginesInFilesOfOneFolderForOneFleet) {
  EXPECT_THAT(IdsOfTwo("a/frontend.sh", "a/worker.sh"), ElementsAre("block-size-mismatch"));
  EXPECT_THAT(IdsOfTwo("a/frontend.sh", "b/worker.sh"),
              testing::Not(testing::Contains("block-size-mismatch")));
}

TEST(Linter, LeavesEnginesOutsideDynamoToOtherRouters) {
  const std::string script(kFrontend);
  EXPECT_THAT(
      IdsOf(LintOneText(script + "python3 -m dynamo.vllm --model m --block-size 32\n", "x.sh")),
      testing::Contains("block-size-mismatch"));
  EXPECT_THAT(IdsOf(LintOneText(script + "vllm serve m --block-size 32\n", "x.sh")),
              testing::Not(testing::Contains("block-size-mismatch")));
}

// --- ports

TEST(Linter, FindsEverySocketThatMeetsAnothers) {
  const LintResult result = LintOneText(
      "vllm serve a --port 8001 --data-parallel-size 8 --kv-events-config "
      R"('{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557",)"
      R"("replay_endpoint":"tcp://*:5700"}' &)"
      "\nvllm serve b --port 8002 --kv-events-config "
      R"('{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5560",)"
      R"("replay_endpoint":"tcp://*:5562"}' &)"
      "\n",
      "x.sh");
  EXPECT_THAT(IdsOf(result), ElementsAre("port-collision", "port-collision"));
}

TEST(Linter, OnlyWarnsOfPodsThatMayBeOnDifferentNodes) {
  const LintResult result = Lint(std::vector{Fixture("bad", "port-collision-same-nodes.yaml")});
  ASSERT_THAT(IdsOf(result), ElementsAre("port-collision"));
  EXPECT_EQ(result.findings[0].finding.severity, Severity::kWarning);
}

// --- fixing

TEST(Linter, SaysAllThatItMends) {
  const std::vector bare = {SourceFile{
      "x.sh",
      "vllm serve m --kv-events-config "
      R"('{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://0.0.0.0:5557"}')"
      "\n"}};
  EXPECT_THAT(IdsOf(Lint(bare)), ElementsAre("endpoint-connects", "replay-missing"));
  EXPECT_TRUE(FixFiles(bare).left.findings.empty());
}

TEST(Linter, ChecksTheOtherFilesWhereOneCannotBeRead) {
  const LintResult result = Lint(std::vector{SourceFile{"broken.yaml", "a: [1, 2\nb: }"},
                                             Fixture("bad", "endpoint-connects.sh")});
  EXPECT_THAT(IdsOf(result), ElementsAre("endpoint-connects"));
  ASSERT_EQ(result.unread.size(), 1);
  EXPECT_EQ(result.unread[0].name, "broken.yaml");
}

// --- on purpose

TEST(Linter, CountsWhatIsWrongOnPurpose) {
  const std::string text = Fixture("bad", "block-size-missing.yaml").text;
  const LintResult result =
      LintOneText("# fathom-lint: wrong on purpose: block-size-missing\n" + text);
  EXPECT_TRUE(result.findings.empty());
  EXPECT_EQ(result.on_purpose, 1);
}

TEST(Linter, FindsWhatAnotherRuleSaysIsOnPurpose) {
  const std::string text = Fixture("bad", "block-size-missing.yaml").text;
  const LintResult result = LintOneText("# fathom-lint: wrong on purpose: replay-missing\n" + text);
  EXPECT_THAT(IdsOf(result), ElementsAre("block-size-missing"));
}

TEST(Linter, HasNotReadAFileWhoseCommentNamesNoRule) {
  const LintResult result = LintOneText("# fathom-lint: wrong on purpose: no-such-rule\na: 1\n");
  EXPECT_EQ(result.unread.size(), 1);
}

TEST(Linter, NeverMendsWhatIsWrongOnPurpose) {
  const std::string text =
      "# fathom-lint: wrong on purpose\n" + Fixture("bad", "block-size-missing.yaml").text;
  EXPECT_EQ(FixFiles({{"x.yaml", text}}).files[0].text, text);
}

// --- bounds

TEST(Linter, KeepsAThousandFindingsAndCountsTheOthers) {
  std::string script;
  for (int i = 0; i < 1200; ++i) script += "vllm serve x --no-enable-prefix-caching\n";
  const LintResult result = LintOneText(script, "x.sh");
  EXPECT_EQ(result.findings.size(), kMaxFindings);
  EXPECT_EQ(result.left_out, 200);
}

TEST(Linter, SaysThatItHasNotLookedAtEverything) {
  std::string script;
  for (int i = 0; i < 4200; ++i) script += "vllm serve x\n";
  const LintResult result = LintOneText(script, "x.sh");
  ASSERT_EQ(result.unread.size(), 1);
  EXPECT_THAT(result.unread[0].problem, HasSubstr("4096"));
}

}  // namespace
}  // namespace fathom
