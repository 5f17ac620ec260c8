#include "lab/mock/fault_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/json.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;

MockOptions With(std::string_view body, MockOptions options = {}) {
  auto changed = WithFaults(std::move(options), body);
  EXPECT_TRUE(changed) << changed.error().what;
  return changed ? *std::move(changed) : MockOptions();
}

std::string Text(const Json& json) {
  std::string text;
  json.WriteTo(text);
  return text;
}

TEST(FaultPage, ChangesWhatItNamesAndNothingElse) {
  const MockOptions broken = With(
      R"({"prompt_fault":"template","kv_events_fault":"hide-salt","kv_delay":0.25,"busy":true})");
  EXPECT_EQ(broken.prompt_fault, PromptFault::kTemplate);
  EXPECT_EQ(broken.kv_events.omission, EventOmission::kSalt);
  EXPECT_EQ(broken.kv_events.delay, std::chrono::milliseconds(250));
  EXPECT_TRUE(broken.busy);
  const MockOptions mended = With(R"({"kv_events_fault":"none","busy":false})", broken);
  EXPECT_EQ(mended.kv_events.omission, EventOmission::kNone);
  EXPECT_FALSE(mended.busy);
  EXPECT_EQ(mended.prompt_fault, PromptFault::kTemplate);
  EXPECT_EQ(mended.kv_events.delay, std::chrono::milliseconds(250));
}

TEST(FaultPage, ReadsWhatItWrites) {
  const MockOptions broken = With(
      R"({"prompt_fault":"bos","prefix_caching":false,"prefix_caching_report":"none",)"
      R"("cached_tokens_report":false,"force_usage":true,"usage_with_choices":true,)"
      R"("kv_events_fault":"no-removals","kv_silent":true,"kv_delay":1.5,"kv_drop_every":2,)"
      R"("kv_lose_every":3,"kv_block_size_label":64,"fail_rate":0.5,"hang_rate":0.25,)"
      R"("die_after_tokens":7,"abort_after_tokens":9,"drain_abort":true,"busy":true,"report_delay":2,"tokenize_delay":3})");
  const std::string page = FaultsPage(broken);
  EXPECT_NE(page, FaultsPage({}));
  EXPECT_EQ(FaultsPage(With(page)), page);
  EXPECT_EQ(FaultsPage(With(FaultsPage({}), broken)), FaultsPage({}));
  // Nothing was left at its default above.
  const auto sound = Json::Parse(FaultsPage({}));
  const auto faulty = Json::Parse(page);
  for (const auto& [name, value] : *sound->object()) {
    EXPECT_NE(Text(*faulty->Find(name)), Text(value)) << name;
  }
}

TEST(FaultPage, RemembersThatCachingWasOff) {
  const MockOptions off = With(R"({"prefix_caching":false})");
  EXPECT_FALSE(off.prefix_caching_was_off);
  EXPECT_TRUE(With(R"({"prefix_caching":true})", off).prefix_caching_was_off);
}

TEST(FaultPage, SaysWhatIsWrong) {
  const auto wrong = [](std::string_view body) { return WithFaults({}, body).error().what; };
  EXPECT_THAT(
      wrong(R"({"promt_fault":"bos"})"),
      HasSubstr("promt_fault: no such fault; known faults: prompt_fault, prefix_caching, "));
  EXPECT_EQ(wrong(R"({"prompt_fault":"eos"})"),
            "prompt_fault must be one of none, bos, template, vocabulary");
  EXPECT_EQ(wrong(R"({"prompt_fault":1})"),
            "prompt_fault must be one of none, bos, template, vocabulary");
  EXPECT_EQ(wrong(R"({"kv_silent":"no"})"), "kv_silent must be true or false");
  EXPECT_EQ(wrong(R"({"kv_lose_every":-1})"), "kv_lose_every must be a whole number up to 1000000");
  EXPECT_EQ(wrong(R"({"kv_delay":-0.1})"), "kv_delay must be a number of seconds up to an hour");
  EXPECT_EQ(wrong(R"({"fail_rate":2})"), "fail_rate must be a number from 0 to 1");
  EXPECT_EQ(wrong("[]"), "the faults must be a JSON object");
  EXPECT_FALSE(WithFaults({}, "{"));
}

TEST(FaultPage, HasTheWordsOfTheOptions) {
  EXPECT_EQ(*ParsePromptFault("vocabulary"), PromptFault::kVocabulary);
  EXPECT_EQ(*ParseEventOmission("hide-lora"), EventOmission::kLora);
  EXPECT_EQ(ParseEventOmission("lies").error().what,
            "'lies' is none of none, no-removals, hide-salt, hide-lora");
}

}  // namespace
}  // namespace fathom
