#include "io/kube/config_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ConfigTreeTest, ScalarsAreTheirText) {
  const auto tree = ReadConfigTree("token: 0123\nflag: yes\nnone: ~\nempty: ''\nlist: [a, 1.0]\n");
  ASSERT_TRUE(tree) << tree.error().what;
  EXPECT_EQ(tree->TextOf("token"), "0123");
  EXPECT_EQ(tree->TextOf("flag"), "yes");
  EXPECT_EQ(tree->Find("none"), nullptr);
  ASSERT_NE(tree->Find("empty"), nullptr);
  ASSERT_NE(tree->Find("list"), nullptr);
  EXPECT_EQ(tree->Find("list")->items.at(1).text, "1.0");
  EXPECT_EQ(tree->Find("absent"), nullptr);
}

TEST(ConfigTreeTest, WhatAMapHasItselfBeatsWhatItMerges) {
  const auto tree = ReadConfigTree("base: &b {x: 1, y: 2}\nown: {<<: *b, x: 3}\n");
  ASSERT_TRUE(tree) << tree.error().what;
  EXPECT_EQ(tree->Find("own")->TextOf("x"), "3");
  EXPECT_EQ(tree->Find("own")->TextOf("y"), "2");
}

TEST(ConfigTreeTest, RefusesWhatReadersWouldReadDifferently) {
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "[";
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i,
                        i - 1);
  }
  const std::string closed = deep + std::string(100, ']');
  for (const std::string& text :
       {std::string("token: s3cret\ntoken: s3cret\n"), std::string("users: [s3cret"), closed, deep,
        bomb, std::string("a: &a [*a]\n"), std::string("s3cret\0", 7),
        std::string("a: s3cret\4")}) {
    const auto tree = ReadConfigTree(text);
    ASSERT_FALSE(tree) << text.substr(0, 80);
    EXPECT_THAT(tree.error().what, HasSubstr("bad YAML"));
    EXPECT_THAT(tree.error().what, Not(HasSubstr("s3cret")));
  }
}

}  // namespace
}  // namespace fathom
