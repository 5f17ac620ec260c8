#include "config/option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "config/option_value.h"

namespace fathom {
namespace {

TEST(OptionTable, NamesEveryOptionOncePerCommand) {
  for (const Command command : kCommands) {
    std::set<std::string_view> names;
    for (const Option& option : Options()) {
      if (!option.BelongsTo(command)) continue;
      EXPECT_TRUE(names.insert(option.name).second) << NameOf(command) << " " << option.name;
      for (const std::string_view alias : option.aliases) {
        EXPECT_TRUE(alias.empty() || names.insert(alias).second) << alias;
      }
    }
    EXPECT_FALSE(names.empty());
  }
}

TEST(OptionTable, HasADefaultThatItsOwnRulesAccept) {
  for (const Option& option : Options()) {
    if (option.secret()) {
      EXPECT_EQ(option.fallback, "") << option.name;  // a built-in key would be no secret
    } else {
      EXPECT_TRUE(ParseValue(option, option.fallback).has_value()) << option.name;
    }
  }
}

TEST(OptionTable, SaysOneSentenceAboutEveryOption) {
  for (const Option& option : Options()) {
    ASSERT_FALSE(option.help.empty()) << option.name;
    EXPECT_TRUE(std::isupper(static_cast<unsigned char>(option.help.front()))) << option.name;
    EXPECT_TRUE(option.help.ends_with('.')) << option.name;
    EXPECT_EQ(option.help.find(". "), std::string_view::npos) << option.name;
    EXPECT_NE(option.commands, 0u) << option.name;
    EXPECT_EQ(option.type == OptionType::kChoice, !option.choices.empty()) << option.name;
  }
}

TEST(OptionTable, HasRangesThatAreNotEmpty) {
  for (const Option& option : Options()) {
    EXPECT_LT(option.range.min, option.range.max) << option.name;
  }
}

TEST(OptionTable, LetsNoTwoOptionsOfACommandReadOneDynamoVariable) {
  for (const Command command : kCommands) {
    std::set<std::string_view> variables;
    for (const Option& option : Options()) {
      for (const DynamoName& dynamo : option.dynamo) {
        if (dynamo.variable.empty() || !option.BelongsTo(command)) continue;
        EXPECT_TRUE(dynamo.variable.starts_with("DYN_")) << dynamo.variable;
        EXPECT_TRUE(variables.insert(dynamo.variable).second) << dynamo.variable;
      }
    }
  }
}

TEST(Option, DerivesItsVariableFromItsName) {
  EXPECT_EQ(FindOption(Command::kServe, "max-in-flight")->EnvironmentName(),
            "FATHOM_MAX_IN_FLIGHT");
}

TEST(Option, IsFoundByNameAndByAlias) {
  const Option* port = FindOption(Command::kServe, "port");
  ASSERT_NE(port, nullptr);
  EXPECT_EQ(FindOption(Command::kServe, "http-port"), port);
  EXPECT_NE(FindOption(Command::kMock, "port"), port);
  EXPECT_EQ(FindOption(Command::kServe, "engine"), nullptr);
  EXPECT_EQ(FindOption(Command::kServe, ""), nullptr);
}

TEST(Option, IsSuggestedForATypo) {
  EXPECT_EQ(NearestOption(Command::kServe, "prot"), "port");
  EXPECT_EQ(NearestOption(Command::kServe, "max-inflight"), "max-in-flight");
  EXPECT_EQ(NearestOption(Command::kServe, "xyzzy"), std::nullopt);
}

}  // namespace
}  // namespace fathom
