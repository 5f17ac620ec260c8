#include "diagnose/manifest/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/manifest/arguments.h"

namespace fathom {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

class CommandLine : public testing::Test {
 protected:
  ShellText Read(std::string text) {
    file_ = {"x.sh", std::move(text)};
    auto shell = ReadShell(Passage(file_));
    EXPECT_TRUE(shell);
    return *std::move(shell);
  }

  static std::vector<std::string> Texts(const std::vector<ShellWord>& words) {
    std::vector<std::string> texts;
    for (const ShellWord& word : words) texts.push_back(word.text);
    return texts;
  }

  std::string Bytes(const std::optional<Span>& span) const {
    return span ? file_.text.substr(span->offset, span->length) : "?";
  }

  SourceFile file_;
};

TEST_F(CommandLine, TakesQuotesAway) {
  const ShellText shell = Read("a 'b c' \"d \\\"e\\\" $F\" g\\ h i'j'\"k\"\n");
  ASSERT_THAT(shell.commands, SizeIs(1));
  EXPECT_THAT(Texts(shell.commands[0].words), ElementsAre("a", "b c", "d \"e\" $F", "g h", "ijk"));
  EXPECT_EQ(Bytes(shell.commands[0].words[1].span), "'b c'");
  EXPECT_EQ(Bytes(shell.commands[0].words[4].span), "i'j'\"k\"");
}

TEST_F(CommandLine, GoesOnBehindABackslashAndStopsAtAComment) {
  const ShellText shell = Read("a \\\r\n  b \\\n  c # d\ne\n");
  ASSERT_THAT(shell.commands, SizeIs(2));
  EXPECT_THAT(Texts(shell.commands[0].words), ElementsAre("a", "b", "c"));
  EXPECT_EQ(shell.commands[0].words[2].place.line, 3u);
  EXPECT_EQ(file_.text.substr(shell.commands[0].end - 1, 1), "c");
}

TEST_F(CommandLine, SplitsLists) {
  const ShellText shell = Read("a && b; c | d & (e) || f 2>&1 >log");
  ASSERT_THAT(shell.commands, SizeIs(6));
  EXPECT_THAT(Texts(shell.commands[5].words), ElementsAre("f"));
  EXPECT_EQ(shell.commands[5].output, "log");
}

TEST_F(CommandLine, KeepsAssignmentsApart) {
  const ShellText shell = Read("A=1 B='x y' run C=2\nD=3\n$ prompt\n");
  ASSERT_THAT(shell.commands, SizeIs(3));
  EXPECT_THAT(Texts(shell.commands[0].assignments), ElementsAre("A=1", "B=x y"));
  EXPECT_THAT(Texts(shell.commands[0].words), ElementsAre("run", "C=2"));
  EXPECT_THAT(Texts(shell.commands[1].assignments), ElementsAre("D=3"));
  EXPECT_THAT(Texts(shell.commands[2].words), ElementsAre("prompt"));
}

TEST_F(CommandLine, ReadsHereDocuments) {
  const ShellText shell =
      Read("cat <<'EOF' > a.yaml\nx: 'y\nEOF\ntee b.yaml <<-END\n\tz: 1\n\tEND\nrun\n");
  ASSERT_THAT(shell.documents, SizeIs(2));
  EXPECT_EQ(shell.documents[0].path, "a.yaml");
  EXPECT_EQ(shell.documents[0].text.text(), "x: 'y\n");
  EXPECT_EQ(shell.documents[1].path, "b.yaml");
  ASSERT_THAT(shell.commands, SizeIs(3));
  EXPECT_THAT(Texts(shell.commands[2].words), ElementsAre("run"));
}

TEST_F(CommandLine, KeepsExpansionsWhole) {
  const ShellText shell = Read("a ${X:-b c} $(d $(e) f) `g`");
  EXPECT_THAT(Texts(shell.commands[0].words), ElementsAre("a", "${X:-b c}", "$(d $(e) f)", "`g`"));
}

TEST_F(CommandLine, EndsAQuoteThatIsNeverClosedWithTheText) {
  EXPECT_THAT(Texts(Read("a 'b c").commands[0].words), ElementsAre("a", "b c"));
  EXPECT_THAT(Texts(Read("a \"b\\").commands[0].words), ElementsAre("a", "b\\"));
  EXPECT_THAT(Texts(Read("a $(b").commands[0].words), ElementsAre("a", "$(b"));
}

TEST_F(CommandLine, RefusesTooManyWords) {
  std::string text;
  for (size_t i = 0; i < ShellText::kMaxWords + 2; ++i) text += "a ";
  const SourceFile file{"x.sh", text};
  const auto shell = ReadShell(Passage(file));
  ASSERT_FALSE(shell);
  EXPECT_EQ(shell.error().what, "x.sh:1: a script of more than 50000 words");
}

TEST_F(CommandLine, HasFlagsWithAndWithoutValues) {
  const ShellText shell =
      Read("model --a=1 --b 2 --enable-c --d -tp 4 --e='{\"x\": 1}' --f -1 --no-g positional");
  const auto flags = FlagsOf(shell.commands[0].words);
  std::vector<std::string> seen;
  for (const Written& flag : flags) {
    seen.push_back(flag.name + " " + flag.value + " " + Bytes(flag.span));
  }
  EXPECT_THAT(seen,
              ElementsAre("--model model model", "--a 1 1", "--b 2 2", "--enable-c  ?", "--d  ?",
                          "-tp 4 4", "--e {\"x\": 1} {\"x\": 1}", "--f -1 -1", "--no-g  ?"));
}

TEST_F(CommandLine, ReplacesVariablesThatAreKnown) {
  const std::vector<Written> known = {
      {"A", "1", {}, Span{}}, {"A", "2", {}, Span{}}, {"SECRET", "", {}, std::nullopt}};
  EXPECT_EQ(Expanded("x$A-${A}-$(A)-${B:-3}", known), "x2-2-2-3");
  EXPECT_EQ(Expanded("$B ${B} $(b c) $ ${A", known), "$B ${B} $(b c) $ ${A");
  EXPECT_EQ(Expanded("$SECRET", known), "$SECRET");
}

}  // namespace
}  // namespace fathom
