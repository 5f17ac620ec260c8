#include "router/gateway/prompt_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace fathom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PromptWatchTest : public testing::Test {
 protected:
  void Note(std::optional<UnreadReason> unread, int times = 1, std::string_view model = "m") {
    for (int i = 0; i < times; ++i) {
      watch_.Note({.model = model,
                   .route = Route::kChat,
                   .engine = EngineKind::kTrtllm,
                   .unread = unread,
                   .tokens = 100},
                  now_);
    }
  }

  // Records of the log since the last call.
  std::vector<std::string> Lines() {
    std::string text(1 << 16, '\0');
    const ssize_t length = pread(fileno(file_.get()), text.data(), text.size(), read_);
    text.resize(std::max<ssize_t>(length, 0));
    read_ += std::max<ssize_t>(length, 0);
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return lines;
  }

  TimePoint now_{std::chrono::hours(1)};
  Registry registry_;
  std::unique_ptr<FILE, int (*)(FILE*)> file_{tmpfile(), fclose};
  off_t read_ = 0;
  Log log_{fileno(file_.get()), LogLevel::kInfo};
  PromptWatch watch_{registry_, log_};
};

TEST_F(PromptWatchTest, AFewUnreadPromptsAreNormal) {
  Note(UnreadReason::kTimeout, PromptWatch::kMostUnread);
  EXPECT_EQ(watch_.StandingOf("m").cause, PromptWatch::Cause::kNone);
  EXPECT_THAT(watch_.Unread(), IsEmpty());
}

TEST_F(PromptWatchTest, MoreThanATenthOfTheLastIsAState) {
  Note(UnreadReason::kNoTokenizer, PromptWatch::kMostUnread + 1);
  const PromptWatch::Standing standing = watch_.StandingOf("m");
  EXPECT_TRUE(standing.degraded());
  EXPECT_EQ(standing.reason, UnreadReason::kNoTokenizer);
  EXPECT_DOUBLE_EQ(standing.share, 1);
  EXPECT_EQ(standing.cost, 600u);
  EXPECT_THAT(standing.fix, HasSubstr("--model-path"));
  EXPECT_THAT(watch_.Unread(), ElementsAre("m"));
  EXPECT_FALSE(watch_.StandingOf("n").degraded());
}

TEST_F(PromptWatchTest, TheLastFiftyCountHoweverSlowlyTheyCome) {
  for (int i = 0; i < 10; ++i) {
    now_ += std::chrono::hours(24);
    Note(UnreadReason::kTimeout);
    Note(std::nullopt);
  }
  EXPECT_TRUE(watch_.StandingOf("m").degraded());
}

TEST_F(PromptWatchTest, TheShareIsOfThePromptsSoFar) {
  Note(std::nullopt, 6);
  Note(UnreadReason::kTimeout, 6);
  EXPECT_DOUBLE_EQ(watch_.StandingOf("m").share, 0.5);
  Note(UnreadReason::kTimeout, 60);
  EXPECT_DOUBLE_EQ(watch_.StandingOf("m").share, 1);
}

TEST_F(PromptWatchTest, PromptsByTextAreWellAndSayWhy) {
  for (unsigned i = 0; i < PromptWatch::kLast; ++i) {
    watch_.Note({.model = "m",
                 .route = Route::kMessages,
                 .engine = EngineKind::kTrtllm,
                 .unread = UnreadReason::kNoTokenizer,
                 .by_text = true,
                 .tokens = 100},
                now_);
  }
  const PromptWatch::Standing standing = watch_.StandingOf("m");
  EXPECT_FALSE(standing.degraded());
  EXPECT_EQ(standing.cause, PromptWatch::Cause::kByText);
  EXPECT_EQ(standing.reason, UnreadReason::kNoTokenizer);
  EXPECT_EQ(standing.cost, 0u);
  EXPECT_THAT(watch_.Unread(), IsEmpty());
}

TEST_F(PromptWatchTest, WithoutPromptsItIsNotTheStateOfNow) {
  Note(UnreadReason::kNoTokenizer, 50);
  EXPECT_THAT(watch_.Unread(now_), ElementsAre("m"));
  EXPECT_THAT(watch_.Unread(now_ + std::chrono::minutes(1)), IsEmpty());
  EXPECT_THAT(watch_.Unread(), ElementsAre("m"));
}

TEST_F(PromptWatchTest, EndsWhenPromptsAreReadAgain) {
  Note(UnreadReason::kTimeout, 50);
  Note(std::nullopt, 44);
  EXPECT_TRUE(watch_.StandingOf("m").degraded());
  Note(std::nullopt, 1);
  EXPECT_FALSE(watch_.StandingOf("m").degraded());
  Note(std::nullopt, 10);
  EXPECT_EQ(watch_.StandingOf("m").reason, std::nullopt) << "nothing is left of it";
}

TEST_F(PromptWatchTest, PromptsOfOtherModelsDoNotLowerTheShare) {
  Note(std::nullopt, 50, "another");
  Note(UnreadReason::kTimeout, 6);
  EXPECT_DOUBLE_EQ(watch_.StandingOf("m").share, 1);
  Note(std::nullopt, 6, "third");
  Note(UnreadReason::kTimeout, 6, "third");
  EXPECT_DOUBLE_EQ(watch_.StandingOf("third").share, 0.5) << "counted while another is unread";
}

TEST_F(PromptWatchTest, IsLoggedOnceWithItsCostAndFix) {
  Note(UnreadReason::kNoTokenizer, 30);
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  for (const std::string_view part :
       {"WARN", "cause=prompts_unread", "model=m", "reason=no_tokenizer", "route=chat",
        "engine=trtllm", "unread=\"6 of the last 6\"", "cost_tokens=600", "--model-path",
        "fathom docs prompts-unread"}) {
    EXPECT_THAT(lines[0], HasSubstr(part));
  }
}

TEST_F(PromptWatchTest, IsLoggedAgainWhileItLasts) {
  Note(UnreadReason::kTimeout, 30);
  now_ += PromptWatch::kRepeated - std::chrono::seconds(1);
  Note(UnreadReason::kTimeout);
  EXPECT_EQ(Lines().size(), 1u);
  now_ += std::chrono::seconds(1);
  Note(UnreadReason::kTimeout, 2);
  EXPECT_THAT(Lines(), ElementsAre(HasSubstr("cost_tokens=3200")));
}

TEST_F(PromptWatchTest, ItsEndIsLogged) {
  Note(UnreadReason::kTimeout, 6);
  Lines();
  Note(std::nullopt, 60);
  EXPECT_THAT(Lines(), ElementsAre(HasSubstr("Prompts are read again model=m")));
}

TEST_F(PromptWatchTest, AStateThatComesAndGoesIsNotLoggedEachTime) {
  for (int i = 0; i < 10; ++i) {
    Note(UnreadReason::kTimeout, 6);
    Note(std::nullopt, 60);
  }
  EXPECT_EQ(Lines().size(), 2u) << "one beginning and its end";
  now_ += PromptWatch::kRepeated;
  Note(UnreadReason::kTimeout, 6);
  EXPECT_EQ(Lines().size(), 1u);
}

TEST_F(PromptWatchTest, AHostileNameOfAModelStaysShortAndOnItsLine) {
  const std::string name = "evil\nWARN forged " + std::string(4000, 'x');
  Note(UnreadReason::kTimeout, 6, name);
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_LT(lines[0].size(), 1000u);
}

TEST_F(PromptWatchTest, AModelThatIsNoLongerAskedForMakesRoom) {
  for (size_t i = 0; i < PromptWatch::kMostModels; ++i) {
    Note(UnreadReason::kTimeout, 6, "model " + std::to_string(i));
  }
  Note(UnreadReason::kTimeout, 6);
  EXPECT_FALSE(watch_.StandingOf("m").degraded());
  now_ += PromptWatch::kRepeated;
  Note(UnreadReason::kTimeout, 6);
  EXPECT_TRUE(watch_.StandingOf("m").degraded());
  EXPECT_EQ(watch_.Unread().size(), PromptWatch::kMostModels);
}

TEST_F(PromptWatchTest, OfTooManyModelsTheFirstAreKept) {
  for (size_t i = 0; i < 2 * PromptWatch::kMostModels; ++i) {
    Note(UnreadReason::kTimeout, 6, "model " + std::to_string(i));
  }
  EXPECT_EQ(watch_.Unread().size(), PromptWatch::kMostModels);
}

}  // namespace
}  // namespace fathom
