#include "router/library/hub_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace fathom {
namespace {

using testing::ElementsAre;

HubEnvironment Of(const std::map<std::string, std::string>& variables) {
  return HubEnvironment::Of([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(HubEnvironment, KnowsTheUsualPlacesOfTheCache) {
  EXPECT_THAT(Of({}).caches, ElementsAre());
  EXPECT_THAT(Of({{"HOME", "/home/ada"}}).caches, ElementsAre("/home/ada/.cache/huggingface/hub"));
  EXPECT_THAT(Of({{"HOME", "/home/ada"},
                  {"XDG_CACHE_HOME", "/xdg"},
                  {"HF_HOME", "~/hf"},
                  {"HUGGINGFACE_HUB_CACHE", "/old"},
                  {"HF_HUB_CACHE", "/new"}})
                  .caches,
              ElementsAre("/new", "/old", "/home/ada/hf/hub", "/xdg/huggingface/hub",
                          "/home/ada/.cache/huggingface/hub"));
  EXPECT_THAT(Of({{"HF_HOME", ""}, {"HF_HUB_CACHE", "relative"}}).caches, ElementsAre());
}

TEST(HubEnvironment, ReadsTheTokenFromAVariableOrAFile) {
  const std::filesystem::path home = std::filesystem::path(testing::TempDir()) / "fathom-hf-home";
  std::filesystem::create_directories(home);
  std::ofstream(home / "token") << "hf_file\n";
  EXPECT_EQ(Of({{"HF_HOME", home.string()}}).token, "hf_file");
  EXPECT_EQ(Of({{"HF_HOME", home.string()}, {"HF_TOKEN", " hf_own "}}).token, "hf_own");
  EXPECT_EQ(Of({{"HF_TOKEN_PATH", (home / "token").string()}, {"HF_HOME", "/none"}}).token,
            "hf_file");
  EXPECT_EQ(Of({{"HF_TOKEN", "two\r\nlines: x"}}).token, "") << "it would become a header";
  std::filesystem::remove_all(home);
}

TEST(HubEnvironment, KnowsTheHub) {
  EXPECT_EQ(Of({}).endpoint, "https://huggingface.co");
  EXPECT_EQ(Of({{"HF_ENDPOINT", "http://mirror:80"}}).endpoint, "http://mirror:80");
  EXPECT_FALSE(Of({{"HF_HUB_OFFLINE", "0"}}).offline);
  EXPECT_TRUE(Of({{"HF_HUB_OFFLINE", "1"}}).offline);
  EXPECT_TRUE(Of({{"HF_HUB_OFFLINE", "True"}}).offline);
  EXPECT_FALSE(Of({}).proxied);
  EXPECT_TRUE(Of({{"https_proxy", "http://proxy:3128"}}).proxied);
}

}  // namespace
}  // namespace fathom
