#include "router/library/hub_name.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(HubName, IsWhatAHubWouldAccept) {
  for (const std::string_view name :
       {"Qwen/Qwen3-8B", "gpt2", "meta-llama/Llama-3.1-8B_x", "a/b", "_a/b_", "0/1.5"}) {
    EXPECT_TRUE(IsHubName(name)) << name;
  }
}

TEST(HubName, IsNoPath) {
  using std::string_literals::operator""s;
  for (const std::string& name : {""s,      "/"s,          "/etc"s,
                                  "a/"s,    "/b"s,         ".."s,
                                  "../b"s,  "a/.."s,       "a/../b"s,
                                  "a/b/c"s, "a//b"s,       "."s,
                                  "a/.b"s,  "a/b."s,       "-a/b"s,
                                  "a/b-"s,  "a--b/c"s,     "a/b..c"s,
                                  "a\\b"s,  "a b"s,        "a\0b"s,
                                  "a\nb"s,  "a/b?c"s,      "a/b#c"s,
                                  "a/%2e"s, "\xc3\xa4/b"s, std::string(97, 'a'),
                                  "~/x"s}) {
    EXPECT_FALSE(IsHubName(name)) << name;
  }
}

TEST(HubRef, HasANameAndARevision) {
  const auto usual = HubRef::Parse("hf:Qwen/Qwen3-8B");
  ASSERT_TRUE(usual);
  EXPECT_EQ(usual->name, "Qwen/Qwen3-8B");
  EXPECT_EQ(usual->revision, "main");
  EXPECT_EQ(usual->ToString(), "hf:Qwen/Qwen3-8B");
  EXPECT_EQ(usual->Folder(), "models--Qwen--Qwen3-8B");
  EXPECT_EQ(HubRef::FolderOf("gpt2"), "models--gpt2");
  const auto pull = HubRef::Parse("hf:a/b@refs/pr/7");
  ASSERT_TRUE(pull);
  EXPECT_EQ(pull->revision, "refs/pr/7");
  EXPECT_EQ(pull->ToString(), "hf:a/b@refs/pr/7");
  for (const std::string_view text : {"hf:", "hf:a/b@", "hf:a/b@..", "hf:a/b@x/../y", "hf:a/b@/x",
                                      "hf:../b", "hf:a/b@x y", "hf:a/b@x@y"}) {
    const auto refused = HubRef::Parse(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_NE(refused.error().what.find(text), std::string::npos);
    EXPECT_NE(refused.error().what.find("hf:ORG/NAME@REVISION"), std::string::npos);
  }
}

TEST(HubRef, KnowsCommits) {
  EXPECT_TRUE(IsCommit("0123456789abcdef0123456789abcdef01234567"));
  EXPECT_FALSE(IsCommit("0123456789ABCDEF0123456789abcdef01234567"));
  EXPECT_FALSE(IsCommit("0123456789abcdef0123456789abcdef0123456"));
  EXPECT_FALSE(IsCommit("main"));
}

}  // namespace
}  // namespace fathom
