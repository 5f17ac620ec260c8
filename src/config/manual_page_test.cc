#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "config/help.h"

namespace fathom {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Roff, ShowsWhatATypesetterWouldChange) {
  EXPECT_EQ(Roff("--print-config"), "\\-\\-print\\-config");
  EXPECT_EQ(Roff("C:\\temp"), "C:\\etemp");
  EXPECT_EQ(Roff("the worker's \"name\""), "the worker\\(aqs \\(dqname\\(dq");
  EXPECT_EQ(Roff("`x` ~ ^"), "\\(gax\\(ga \\(ti \\(ha");
}

TEST(Roff, DoesNotBeginARequest) {
  EXPECT_EQ(Roff(".env files"), "\\&.env files");
  EXPECT_EQ(Roff("'quoted'"), "\\&\\(aqquoted\\(aq");
  EXPECT_EQ(Roff("a .env file"), "a .env file");
}

TEST(ManualOf, NamesEveryOptionOfTheCommand) {
  for (const Command command : kCommands) {
    const std::string page = ManualOf(command);
    for (const Option& option : Options()) {
      if (!option.BelongsTo(command)) continue;
      EXPECT_THAT(page, HasSubstr(".TP\n\\fB" + Roff("--" + std::string(option.name)) + "\\fR"));
      EXPECT_THAT(page, HasSubstr("\n" + Roff(option.help) + "\n"));
      EXPECT_THAT(page, HasSubstr(Roff(option.EnvironmentName())));
      for (const std::string_view alias : option.aliases) {
        EXPECT_THAT(page, HasSubstr(Roff(alias)));
      }
    }
  }
}

TEST(OverviewManual, NamesEveryCommandAndThePagesOfThoseWithOptions) {
  const std::string page = OverviewManual();
  for (const CommandSummary& command : AllCommands()) {
    EXPECT_THAT(page, HasSubstr("\n\\fB" + std::string(command.name) + "\\fR\n"));
  }
  for (const Command command : kCommands) {
    EXPECT_THAT(page, HasSubstr("fathom\\-" + std::string(NameOf(command)) + "\\fR(1)"));
  }
}

// Lines that begin with a dot are requests; only these are meant.
TEST(ManualPages, HaveNoRequestByAccident) {
  std::vector<std::string> pages = {OverviewManual()};
  for (const Command command : kCommands) pages.push_back(ManualOf(command));
  for (const std::string& page : pages) {
    EXPECT_THAT(page, StartsWith(".TH FATHOM"));
    for (const std::string_view line : SplitAny(page, "\n")) {
      EXPECT_FALSE(line.starts_with('\'')) << line;
      if (!line.starts_with('.')) continue;
      const std::string_view request = line.substr(1, line.find(' ') - 1);
      const std::vector<std::string_view> meant = {"TH", "SH", "SS", "TP", "PP", "br", "nh", "ad"};
      EXPECT_THAT(meant, testing::Contains(request)) << line;
    }
  }
}

}  // namespace
}  // namespace fathom
