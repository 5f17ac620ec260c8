#include "diagnose/lint/purpose_comment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PurposeCommentTest : public testing::Test {
 protected:
  // The lines where a finding of that kind is covered.
  static std::vector<uint32_t> Covered(const std::string& text,
                                       FindingId id = FindingId::kPublisherOff) {
    const PurposeComments comments(SourceFile{"x", text});
    EXPECT_TRUE(comments.problems().empty());
    std::vector<uint32_t> lines;
    for (uint32_t line = 1; line <= 12; ++line) {
      Finding finding = MakeFinding(id, "", "");
      finding.place = {"x", line};
      if (comments.Cover(finding)) lines.push_back(line);
    }
    return lines;
  }

  static std::vector<std::string> Problems(const std::string& text) {
    std::vector<std::string> problems;
    const PurposeComments comments(SourceFile{"x.yaml", text});
    for (const auto& problem : comments.problems()) problems.push_back(problem.problem);
    return problems;
  }
};

TEST_F(PurposeCommentTest, CoversTheWholeFileFromBeforeEverythingElse) {
  EXPECT_EQ(Covered("# A page.\n---\n# fathom-lint: wrong on purpose\na: 1\n---\nb: 2\n").size(),
            12);
}

TEST_F(PurposeCommentTest, CoversFindingsOfTheFileAsAWhole) {
  const PurposeComments comments(SourceFile{"x", "# fathom-lint: wrong on purpose\na: 1\n"});
  Finding finding = MakeFinding(FindingId::kPublisherOff, "", "");
  finding.place = {"x", 0};
  EXPECT_TRUE(comments.Cover(finding));
}

TEST_F(PurposeCommentTest, CoversItsLineFromTheEndOfOne) {
  EXPECT_THAT(Covered("a: 1\nb: 2  # fathom-lint: wrong on purpose\nc: 3\n"), ElementsAre(2));
}

TEST_F(PurposeCommentTest, CoversTheObjectBelowIt) {
  EXPECT_THAT(Covered("services:\n"
                      "  # fathom-lint: wrong on purpose\n"
                      "  one:\n"
                      "    image: x\n"
                      "\n"
                      "    args: y\n"
                      "  two:\n"
                      "    image: x\n"),
              ElementsAre(2, 3, 4, 5, 6));
}

TEST_F(PurposeCommentTest, CoversTheDocumentThatItBegins) {
  EXPECT_THAT(Covered("a: 1\n"
                      "---\n"
                      "# fathom-lint: wrong on purpose\n"
                      "b: 2\n"
                      "c: 3\n"
                      "---\n"
                      "d: 4\n"),
              ElementsAre(3, 4, 5));
}

TEST_F(PurposeCommentTest, CoversACommandWithItsContinuationLines) {
  EXPECT_THAT(Covered("set -e\n"
                      "# fathom-lint: wrong on purpose\n"
                      "vllm serve x \\\n"
                      "--port 1\n"
                      "vllm serve y\n"),
              ElementsAre(2, 3, 4));
}

TEST_F(PurposeCommentTest, CoversTheFencedBlockBelowIt) {
  EXPECT_THAT(Covered("# Title of a page\n"
                      "Text.\n"
                      "<!-- fathom-lint: wrong on purpose -->\n"
                      "```yaml\n"
                      "a: 1\n"
                      "```\n"
                      "```yaml\n"
                      "b: 1\n"
                      "```\n"),
              ElementsAre(3, 4, 5, 6));
}

TEST_F(PurposeCommentTest, CoversOnlyTheRulesThatItNames) {
  const std::string text =
      "# fathom-lint: wrong on purpose: block-size-missing, publisher-off (it is a test: really)\n";
  EXPECT_FALSE(Covered(text, FindingId::kPublisherOff).empty());
  EXPECT_FALSE(Covered(text, FindingId::kBlockSizeMissing).empty());
  EXPECT_TRUE(Covered(text, FindingId::kReplayMissing).empty());
}

TEST_F(PurposeCommentTest, IsNotWhatOnlyLooksLikeOne) {
  EXPECT_TRUE(Covered("Write `# fathom-lint: wrong on purpose` above it.\n").empty());
  EXPECT_TRUE(Covered("a: \"fathom-lint: wrong on purpose\"\n").empty());
}

TEST_F(PurposeCommentTest, TellsARuleThatThereIsNot) {
  EXPECT_THAT(Problems("a: 1\n# fathom-lint: wrong on purpose: block-size-mising\n"),
              ElementsAre("x.yaml:2: 'block-size-mising' is not a rule"));
}

TEST_F(PurposeCommentTest, TellsWordsThatItDoesNotKnow) {
  EXPECT_THAT(Problems("# fathom-lint: ignore\n"), ElementsAre(HasSubstr("wrong on purpose")));
}

TEST_F(PurposeCommentTest, TellsAFewProblemsOfAFileAndNotAll) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "# fathom-lint: ignore\n";
  EXPECT_EQ(Problems(text).size(), 16);
}

}  // namespace
}  // namespace fathom
