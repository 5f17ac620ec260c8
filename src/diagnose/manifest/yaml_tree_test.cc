#include "diagnose/manifest/yaml_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

// A text with its tree.
class Read {
 public:
  explicit Read(std::string text)
      : file_{"x.yaml", std::move(text)}, tree_(YamlTree::Parse(Passage(file_))) {}

  const YamlNode& root() const {
    EXPECT_TRUE(tree_) << tree_.error().what;
    return *tree_->documents().at(0);
  }
  std::string problem() const { return tree_ ? "" : tree_.error().what; }
  size_t documents() const { return tree_->documents().size(); }
  // What stands in the file where the node says that it is.
  std::string Bytes(const YamlNode& node) const {
    const auto span = node.span();
    return span ? file_.text.substr(span->offset, span->length) : "?";
  }
  std::string ContentOf(const YamlNode& node) const {
    const auto passage = PassageOf(node);
    return passage ? std::string(passage->text()) : "?";
  }

 private:
  const SourceFile file_;
  const Result<YamlTree> tree_;
};

TEST(YamlTree, KnowsTheBytesOfEveryScalar) {
  const Read read("a: plain\nb: 'it''s'  # c\nc: \"q\\\"x\"\nd: [1, \"two\"]\n");
  EXPECT_EQ(read.Bytes(*read.root().Find("a")), "plain");
  EXPECT_EQ(read.Bytes(*read.root().Find("b")), "'it''s'");
  EXPECT_EQ(read.root().TextOf("b"), "it's");
  EXPECT_EQ(read.Bytes(*read.root().Find("c")), "\"q\\\"x\"");
  EXPECT_EQ(read.root().TextOf("c"), "q\"x");
  EXPECT_EQ(read.Bytes(*read.root().Find("d")->items[1]), "\"two\"");
  EXPECT_EQ(read.root().Find("d")->items[1]->place().line, 4u);
}

TEST(YamlTree, CountsBytesBehindAMarkAndLettersOfSeveralBytesAndCarriageReturns) {
  const Read read(
      "\xef\xbb\xbf"
      "a: \xc3\xa9\xe2\x82\xac x\r\n\xc3\xa9: \"\xf0\x9f\x98\x80\"\r\nb:\t16\r\nc: {d: 32}\r\n");
  EXPECT_EQ(read.Bytes(*read.root().Find("a")), "\xc3\xa9\xe2\x82\xac x");
  EXPECT_EQ(read.Bytes(*read.root().Find("\xc3\xa9")), "\"\xf0\x9f\x98\x80\"");
  EXPECT_EQ(read.Bytes(*read.root().Find("b")), "16");
  EXPECT_EQ(read.Bytes(*read.root().Find("c", "d")), "32");
  EXPECT_EQ(read.root().Find("c", "d")->place().line, 4u);
}

TEST(YamlTree, LooksBehindAnchorsAndTags) {
  const Read read("a: &x !!str 16\nb: *x\n");
  EXPECT_EQ(read.Bytes(*read.root().Find("a")), "16");
  EXPECT_EQ(read.root().Find("b"), read.root().Find("a"));
}

TEST(YamlTree, FindsTheTextOfBlocksAgain) {
  const Read read("a: |\n  one\n    two\n\n  three\nb: >-\n  four\n  five\nc: long\n  plain\n");
  EXPECT_EQ(read.Bytes(*read.root().Find("a")), "|\n  one\n    two\n\n  three");
  EXPECT_EQ(read.ContentOf(*read.root().Find("a")), "  one\n    two\n\n  three");
  EXPECT_EQ(read.ContentOf(*read.root().Find("b")), "four five");
  EXPECT_EQ(read.Bytes(*read.root().Find("c")), "long\n  plain");
  const auto folded = PassageOf(*read.root().Find("b"));
  EXPECT_EQ(folded->PlaceOf(folded->text().find("five")).line, 8u);
  EXPECT_FALSE(folded->verbatim());
}

TEST(YamlTree, MapsEscapesBackToTheFile) {
  const Read read("a: \"x\\n\\u00e9 --size 16\\\n   0\"\n");
  const auto passage = PassageOf(*read.root().Find("a"));
  ASSERT_TRUE(passage);
  EXPECT_EQ(passage->text(), "x\n\xc3\xa9 --size 160");
  const auto size = passage->SpanOf(passage->text().find("--size"), 6);
  ASSERT_TRUE(size);
  EXPECT_EQ(passage->file().text.substr(size->offset, size->length), "--size");
  EXPECT_EQ(passage->SpanOf(passage->text().find("160"), 3), std::nullopt);
}

TEST(YamlTree, MergesMaps) {
  const Read read("base: &b {x: 1, y: 2}\nown:\n  <<: *b\n  y: 3\n");
  EXPECT_EQ(read.root().Find("own")->TextOf("x"), "1");
  EXPECT_EQ(read.root().Find("own")->TextOf("y"), "3");
}

TEST(YamlTree, ReadsSeveralDocumentsWithoutTheEmptyOnes) {
  EXPECT_EQ(Read("---\na: 1\n---\n---\nb: 2\n...\n").documents(), 2u);
  EXPECT_EQ(Read("").documents(), 0u);
}

TEST(YamlTree, ReadsJson) {
  const Read read("{\n\t\"a\": {\"b\": \"c\\/d\"},\n\t\"n\": null\n}");
  EXPECT_EQ(read.root().Find("a")->TextOf("b"), "c/d");
  EXPECT_EQ(read.root().Find("n"), nullptr);
}

TEST(YamlTree, RefusesWhatWouldNotEnd) {
  EXPECT_THAT(Read("a: &x [*x]\n").problem(), HasSubstr("x.yaml:1:8: bad YAML: an anchor refers"));
  EXPECT_THAT(Read("a: &x {b: *x}\n").problem(), HasSubstr("contains it"));
  EXPECT_THAT(Read("a: *x\n").problem(), StartsWith("x.yaml:1:"));

  std::string laughs = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 12; ++i) {
    laughs +=
        fmt::format("a{0}: &a{0} [*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1}]\n", i, i - 1);
  }
  EXPECT_THAT(Read(laughs).problem(), HasSubstr("more than 1000000 values"));

  std::string merges = "a: &a {";
  for (int i = 0; i < 5000; ++i) merges += fmt::format("k{}: 1,", i);
  merges += "}\nb:\n";
  for (int i = 0; i < 5000; ++i) merges += "- {<<: *a}\n";
  EXPECT_THAT(Read(merges).problem(), HasSubstr("more than 1000000 values"));
}

TEST(YamlTree, RefusesWhatIsTooDeepOrTooLong) {
  for (const std::string_view open : {"[", "{a: ", "- ", "? ", "[{a: "}) {
    std::string bomb;
    for (int i = 0; i < 100'000; ++i) bomb += open;
    EXPECT_THAT(Read(bomb).problem(), StartsWith("x.yaml:1:")) << open;
  }
  EXPECT_EQ(Read(std::string(90, '[') + std::string(90, ']')).problem(), "");
  EXPECT_THAT(Read(std::string(101, '[') + std::string(101, ']')).problem(),
              HasSubstr("nested deeper than 100"));
  std::string list = "[";
  for (size_t i = 0; i < YamlTree::kMaxNodes + 1; ++i) list += "1,\n";
  EXPECT_THAT(Read(list + "]").problem(), HasSubstr("more than 1000000 values"));
}

TEST(YamlTree, RefusesAKeyTwice) {
  EXPECT_EQ(Read("a: 1\nb:\n  c: 1\n  c: 2\n").problem(),
            "x.yaml:4:3: bad YAML: the key 'c' is already in this map");
}

TEST(YamlTree, NamesTheLineWhereATextIsCutOff) {
  EXPECT_EQ(Read("a:\n  b: \"cut\n").problem(),
            "x.yaml:2:6: bad YAML: a quote that is never closed");
  EXPECT_THAT(Read("a:\n  b: 'cut\\").problem(), StartsWith("x.yaml:2:11:"));
  EXPECT_THAT(Read("a:\n  b: {c: 1\n").problem(), StartsWith("x.yaml:3:"));
}

TEST(YamlTree, RefusesATokenThatFitsNowhere) {
  EXPECT_EQ(Read(", a").problem(), "x.yaml:1:1: bad YAML: this text belongs to no node");
  EXPECT_THAT(Read("a: 1\n]\n").problem(), StartsWith("x.yaml:2:1: bad YAML: "));
}

TEST(YamlTree, RefusesWhatIsNoText) {
  using namespace std::string_literals;
  EXPECT_THAT(Read("a: 1\nb: \0\n"s).problem(), HasSubstr("x.yaml:2: bad YAML: not text"));
  EXPECT_THAT(Read("a: 1\nb: \4\nc: 2\n").problem(), HasSubstr("x.yaml:2: bad YAML: not text"));
  EXPECT_THAT(Read("\xff\xfe"
                   "a\0"s)
                  .problem(),
              HasSubstr("not text"));
}

}  // namespace
}  // namespace fathom
