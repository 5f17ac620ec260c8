#include "config/renamed_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <vector>

#include "config/help.h"
#include "config/sources.h"

namespace fathom {
namespace {

// Made-up renames of real options: a number, a list, a switch, and one that begins like a negation.
constexpr Renamed kMadeUp[] = {{"old-port", "port", "0.1.0"},
                               {"old-urls", "worker-urls", "0.1.0"},
                               {"old-switch", "ask-usage", "0.1.0"},
                               {"no-news-after", "no-events-after", "0.1.0"}};

struct RenamedWorld {
  std::vector<std::string_view> args = {};
  Environment environment = {};
  std::optional<std::string> yaml = {};
  Command command = Command::kServe;

  Result<Settings> Load() const {
    std::vector<std::string_view> all = args;
    if (yaml) all.insert(all.begin(), {"--config", "c.yaml"});
    return LoadSettings(
        command, all, environment, [&](const std::string&) -> Result<std::string> { return *yaml; },
        kMadeUp);
  }
  Settings Loaded() const {
    auto settings = Load();
    if (settings) return *std::move(settings);
    ADD_FAILURE() << settings.error().what;
    return Settings(command);
  }
  std::string Refusal() const {
    const auto settings = Load();
    return settings ? "accepted" : settings.error().what;
  }
};

// "FORMER NOW ORIGIN RELEASE" of each.
std::vector<std::string> Reported(const Settings& settings) {
  std::vector<std::string> reported;
  for (const auto& [former, now, origin, removed_in] : settings.former_names()) {
    reported.push_back(former + " " + now + " " + origin + " " + removed_in);
  }
  return reported;
}

TEST(RenamedOptions, AnswerToTheirFormerNameAsAFlag) {
  const Settings settings = RenamedWorld{.args = {"--old-port", "4"}}.Loaded();
  EXPECT_EQ(settings.Integer("port"), 4);
  EXPECT_EQ(settings.OriginOf("port"), "flag --old-port (former name)");
  EXPECT_THAT(Reported(settings), testing::ElementsAre("--old-port --port flag --old-port 0.2.0"));
}

TEST(RenamedOptions, AnswerToTheirFormerNameAsAVariable) {
  const Settings settings = RenamedWorld{.environment = {{"FATHOM_OLD_PORT", "5"}}}.Loaded();
  EXPECT_EQ(settings.Integer("port"), 5);
  EXPECT_EQ(settings.OriginOf("port"), "environment FATHOM_OLD_PORT (former name)");
  EXPECT_THAT(Reported(settings), testing::ElementsAre("FATHOM_OLD_PORT FATHOM_PORT environment "
                                                       "FATHOM_OLD_PORT 0.2.0"));
}

TEST(RenamedOptions, AnswerToTheirFormerNameAsAKeyWithEitherSeparator) {
  for (const char* const key : {"old-port", "old_port"}) {
    const Settings settings = RenamedWorld{.yaml = std::string("\n") + key + ": 6\n"}.Loaded();
    EXPECT_EQ(settings.Integer("port"), 6);
    EXPECT_EQ(settings.OriginOf("port"), "c.yaml:2 (former name)");
    EXPECT_THAT(Reported(settings),
                testing::ElementsAre(std::string(key) + " port c.yaml:2 0.2.0"));
  }
}

TEST(RenamedOptions, KeepTheirForms) {
  const RenamedWorld lists = {
      .args = {"--old-urls", "http://a", "http://b", "--old-urls=http://c"}};
  EXPECT_THAT(lists.Loaded().List("worker-urls"),
              testing::ElementsAre("http://a", "http://b", "http://c"));
  EXPECT_EQ(lists.Loaded().former_names().size(), 1u);
  const Settings off = RenamedWorld{.args = {"--no-old-switch"}}.Loaded();
  EXPECT_FALSE(off.Flag("ask-usage"));
  EXPECT_THAT(Reported(off), testing::ElementsAre("--no-old-switch --no-ask-usage flag "
                                                  "--no-old-switch 0.2.0"));
  EXPECT_THAT(Reported(RenamedWorld{.args = {"--no-news-after=70s"}}.Loaded()),
              testing::ElementsAre("--no-news-after --no-events-after flag --no-news-after 0.2.0"));
  EXPECT_EQ((RenamedWorld{.args = {"--old-port=x"}}.Refusal()),
            "--old-port=x: must be a whole number");
}

TEST(RenamedOptions, AreRefusedUnderBothNamesInOneSource) {
  EXPECT_EQ((RenamedWorld{.args = {"--port=1", "--old-port=1"}}.Refusal()),
            "--old-port: former name of --port, which is set as well; remove --old-port");
  EXPECT_EQ((RenamedWorld{.args = {"--old-urls=http://a", "--worker-urls=http://b"}}.Refusal()),
            "--old-urls: former name of --worker-urls, which is set as well; remove --old-urls");
  EXPECT_EQ(
      (RenamedWorld{.environment = {{"FATHOM_OLD_PORT", "1"}, {"FATHOM_PORT", "1"}}}.Refusal()),
      "FATHOM_OLD_PORT: former name of FATHOM_PORT, which is set as well; remove "
      "FATHOM_OLD_PORT");
  EXPECT_EQ((RenamedWorld{.yaml = "port: 1\nold-port: 1\n"}.Refusal()),
            "c.yaml:2: old-port: already set on line 1 as port; remove one of them");
}

TEST(RenamedOptions, InTwoSourcesFollowThePrecedence) {
  const Settings settings =
      RenamedWorld{.args = {"--port=1"}, .environment = {{"FATHOM_OLD_PORT", "2"}}}.Loaded();
  EXPECT_EQ(settings.Integer("port"), 1);
  EXPECT_EQ(settings.OriginOf("port"), "flag --port");
  EXPECT_EQ(settings.former_names().size(), 1u) << "the variable breaks with the next release";
}

TEST(RenamedOptions, BelongToTheCommandsOfThePresentName) {
  EXPECT_EQ((RenamedWorld{.args = {"--old-urls=http://a"}, .command = Command::kMock}.Refusal()),
            "--old-urls: no such option; fathom mock --help lists them");
  const RenamedWorld skipped = {.environment = {{"FATHOM_OLD_URLS", "http://a"}},
                                .command = Command::kMock};
  EXPECT_THAT(skipped.Loaded().former_names(), testing::IsEmpty());
}

TEST(RenamedOptions, AreReportedWithTheirOriginAndTheRelease) {
  const Settings settings = RenamedWorld{.yaml = "old_port: 6\n"}.Loaded();
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  Log log(ends[1]);
  WarnOfFormerNames(settings, log);
  close(ends[1]);
  std::array<char, 1000> buffer{};
  const ssize_t size = read(ends[0], buffer.data(), buffer.size());
  close(ends[0]);
  EXPECT_THAT(std::string(buffer.data(), static_cast<size_t>(size)),
              testing::HasSubstr("An option has its former name; the next release does not know it "
                                 "former=old_port name=port origin=c.yaml:1 removed_in=0.2.0"));
  EXPECT_EQ(FormerNameNote(settings.former_names()[0]),
            "old_port is a former name (c.yaml:1); write port; Fathom 0.2.0 removes it");
  EXPECT_THAT(PrintConfig(settings), testing::HasSubstr("c.yaml:1 (former name)"));
}

TEST(RenamedOptions, LeadFromNamesThatAreFreeToOptionsThatExist) {
  for (const auto& [former, now, release] : RenamedOptions()) {
    EXPECT_FALSE(CommandWith(former)) << former;
    EXPECT_TRUE(CommandWith(now)) << now;
  }
}

}  // namespace
}  // namespace fathom
