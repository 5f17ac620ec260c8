#include "config/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/text.h"
#include "config/sources.h"

namespace fathom {
namespace {

using testing::HasSubstr;
using testing::Not;

Settings Loaded(std::vector<std::string_view> args) {
  auto settings = LoadSettings(Command::kServe, args, {}, ReadFile);
  if (settings) return *std::move(settings);
  ADD_FAILURE() << settings.error().what;
  return Settings(Command::kServe);
}

TEST(HelpText, NamesEveryOptionOfTheCommandAndNoOther) {
  for (const Command command : kCommands) {
    const std::string help = HelpText(command, 100);
    for (const Option& option : Options()) {
      if (option.BelongsTo(command)) {
        EXPECT_THAT(help, HasSubstr(std::string(option.name)));
        EXPECT_THAT(help, HasSubstr(option.EnvironmentName()));
      } else if (FindOption(command, option.name) == nullptr) {
        EXPECT_THAT(help, Not(HasSubstr("--" + std::string(option.name) + " ")));
      }
    }
  }
}

TEST(HelpText, StaysWithinTheWidth) {
  for (const size_t width : {60u, 80u, 100u, 140u}) {
    for (const Command command : kCommands) {
      for (const std::string_view line : SplitAny(HelpText(command, width), "\n")) {
        EXPECT_LE(line.size(), width) << line;
      }
    }
  }
}

TEST(HelpText, PutsTheTextBelowTheOptionWhereTheTerminalIsNarrow) {
  EXPECT_THAT(HelpText(Command::kServe, 60),
              HasSubstr("\nListening\n"
                        "  --host HOST\n"
                        "        Address to listen on; 0.0.0.0 or :: for every\n"
                        "        interface.\n"));
}

TEST(Wrapped, KeepsWordsWhole) {
  EXPECT_EQ(Wrapped("one two three", 0, 2, 8), "  one\n  two\n  three\n");
  EXPECT_EQ(Wrapped("one two", 5, 6, 80), " one two\n");
  EXPECT_EQ(Wrapped("see http://host/path", 0, 0, 8), "see\nhttp://host/path\n");
}

TEST(HelpText, ShowsDefaultEnvironmentAndOtherNames) {
  EXPECT_THAT(HelpText(Command::kServe, 100),
              HasSubstr("\nListening\n"
                        "  --host HOST                   "
                        "Address to listen on; 0.0.0.0 or :: for every interface.\n"
                        "                                "
                        "[default 127.0.0.1; FATHOM_HOST, DYN_HTTP_HOST; also --http-host]\n"));
  EXPECT_THAT(HelpText(Command::kMock, 100), HasSubstr("[default 8100; FATHOM_PORT]"));
}

TEST(PrintConfig, ShowsEveryOptionWithItsValueAndOrigin) {
  const std::string text = PrintConfig(Loaded({"--http-port", "9", "--connect-timeout", "1500ms"}));
  EXPECT_THAT(text, HasSubstr("port                                 9 "));
  EXPECT_THAT(text, HasSubstr("flag --http-port\n"));
  EXPECT_THAT(text, HasSubstr("connect-timeout                      1500ms"));
  EXPECT_THAT(text, HasSubstr("max-body-size                        192MiB"));
  for (const Option& option : Options()) {
    if (option.BelongsTo(Command::kServe)) {
      EXPECT_THAT(text, HasSubstr(std::string(option.name) + " "));
    }
  }
}

TEST(PrintConfig, HidesSecrets) {
  const std::string text = PrintConfig(Loaded({"--admin-key", "hush", "--api-key", "quiet,still"}));
  EXPECT_THAT(text, Not(HasSubstr("hush")));
  EXPECT_THAT(text, Not(HasSubstr("quiet")));
  EXPECT_THAT(text, Not(HasSubstr("still")));
  EXPECT_THAT(text, HasSubstr("admin-key                            (set) "));
  EXPECT_THAT(PrintConfig(Loaded({})), HasSubstr("admin-key                            (unset) "));
}

TEST(PrintConfig, ListsTheWorkers) {
  Settings settings = Loaded({"--worker-urls", "http://a:1"});
  WorkerEntry entry;
  entry.url = "https://bb:1";
  entry.kv_events = "tcp://bb:5557";
  entry.origin = "c.yaml:7";
  ASSERT_TRUE(settings.AddWorker(entry));
  EXPECT_THAT(PrintConfig(settings),
              testing::EndsWith("\nworkers: 2\n"
                                "  http://a:1    flag --worker-urls\n"
                                "  https://bb:1  c.yaml:7 kv_events=tcp://bb:5557\n"));
}

TEST(ConfigurationPage, HasARowForEveryOption) {
  const std::string page = ConfigurationPage();
  for (const Option& option : Options()) {
    EXPECT_THAT(page, HasSubstr("| `--" + std::string(option.name) + "`"));
  }
  EXPECT_THAT(page, HasSubstr("| `--port`, `--http-port` | `FATHOM_PORT` | `DYN_HTTP_PORT` | "
                              "`8000` | 0 to 65535 | Port to listen on; 0 picks a free one. |"));
  EXPECT_THAT(page, HasSubstr("| `DYN_HTTP_BODY_LIMIT_MB` (in MiB) | `192MiB` |"));
}

TEST(ConfigurationPage, IsWhatTheDocsSay) {
  const auto written = ReadFile("docs/configuration.md");
  ASSERT_TRUE(written.has_value()) << "docs/configuration.md is missing; run ./dev docs";
  EXPECT_TRUE(*written == ConfigurationPage())
      << "docs/configuration.md differs from the table of options; run ./dev docs";
}

}  // namespace
}  // namespace fathom
