#include "router/gateway/prompt_kind.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

PromptKind OfMessages(std::string_view messages) { return KindOf({.messages = messages}); }

TEST(PromptKind, IsSeenFromTheMembersOfARequest) {
  EXPECT_EQ(KindOf({.prompt = "[1,2]"}), PromptKind::kIds);
  EXPECT_EQ(KindOf({.prompt = R"("developer")"}), PromptKind::kText);
  EXPECT_EQ(OfMessages(R"([{"role":"user","content":"a"}])"), PromptKind::kChat);
  EXPECT_EQ(OfMessages(R"([{"role":"developer","content":"a"}])"), PromptKind::kDeveloper);
  EXPECT_EQ(OfMessages(R"([{"role":"tool","tool_call_id":"1","content":"a"}])"),
            PromptKind::kTools);
  EXPECT_EQ(OfMessages(R"([{"role":"user","content":[{"type":"image_url"}]}])"),
            PromptKind::kMedia);
  EXPECT_EQ(KindOf({.messages = "[]", .tools = "[]"}), PromptKind::kTools);
  EXPECT_EQ(KindOf({.messages = "[]", .reasoning_effort = "\"low\""}), PromptKind::kOptions);
}

TEST(PromptKind, OfSeveralIsTheOneThatChangesMost) {
  constexpr std::string_view kAll =
      R"([{"role":"developer"},{"role":"tool","tool_call_id":"1"},{"type":"input_audio"}])";
  EXPECT_EQ(OfMessages(kAll), PromptKind::kMedia);
  EXPECT_EQ(KindOf({.messages = R"([{"role":"developer"}])", .tools = "[1]"}),
            PromptKind::kDeveloper);
  EXPECT_EQ(KindOf({.messages = "[]", .tools = "[1]", .chat_template_kwargs = "{}"}),
            PromptKind::kTools);
}

TEST(PromptKind, IsNotSeenInWhatUsersWrite) {
  EXPECT_EQ(OfMessages(R"([{"role":"user","content":"say \"developer\" and \"image_url\""}])"),
            PromptKind::kChat);
}

}  // namespace
}  // namespace fathom
