#include "io/nats/nats_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace fathom {
namespace {

using Step = NatsReader::Step;
using ::testing::ElementsAre;
using ::testing::Pair;

constexpr size_t kLongest = 100;

using Steps = std::vector<std::pair<Step, std::string>>;

// Until a fault, in pieces of that many bytes.
Steps StepsOf(std::string_view bytes, size_t piece = std::string_view::npos) {
  NatsReader reader(kLongest);
  Steps steps;
  while (!bytes.empty()) {
    // A copy, so that what is kept of it after its end is noticed.
    const std::string taken(bytes.substr(0, piece));
    bytes.remove_prefix(taken.size());
    std::string_view in = taken;
    for (;;) {
      const Step step = reader.Take(in);
      if (step == Step::kMore) break;
      steps.emplace_back(step, reader.text());
      if (step == Step::kFault) return steps;
    }
  }
  return steps;
}

TEST(NatsReader, ReadsAllThatAServerSays) {
  const std::string said =
      "INFO {\"nonce\":\"x\"} \r\n+OK\r\nPING\r\npong\r\n-ERR 'Stale Connection'\r\n"
      "MSG a.b 1 5\r\nhello\r\nMSG a.b 1 reply.to 2\r\n\r\n\r\nMSG a 12 0\r\n\r\nPING\r\n";
  const Steps steps = StepsOf(said);
  EXPECT_THAT(steps, ElementsAre(Pair(Step::kInfo, "{\"nonce\":\"x\"}"), Pair(Step::kPing, ""),
                                 Pair(Step::kPong, ""), Pair(Step::kError, "Stale Connection"),
                                 Pair(Step::kMessage, "hello"), Pair(Step::kMessage, "\r\n"),
                                 Pair(Step::kMessage, ""), Pair(Step::kPing, "")));
  for (size_t piece = 1; piece < 30; ++piece) EXPECT_EQ(StepsOf(said, piece), steps) << piece;
}

TEST(NatsReader, PassesOverWhatIsTooLongOrHasHeaders) {
  const std::string said = "MSG a 1 101\r\n" + std::string(101, 'x') +
                           "\r\nHMSG a 1 12 14\r\nNATS/1.0\r\n\r\nhi\r\nMSG a 1 100\r\n" +
                           std::string(100, 'y') + "\r\n";
  for (const size_t piece : {size_t{1}, size_t{7}, said.size()}) {
    EXPECT_THAT(StepsOf(said, piece), ElementsAre(Pair(Step::kMessage, std::string(100, 'y'))));
  }
}

TEST(NatsReader, RefusesWhatIsNotNats) {
  for (const std::string said :
       {"HTTP/1.1 400 Bad Request\r\n", "\r\n", "MSG\r\n", "MSG a 1\r\n", "MSG a 1 -1\r\n",
        "MSG a 1 b c 5\r\n", "MSG a 1 99999999999999999999999\r\n", "MSG a 1 67108865\r\n",
        "HMSG a 1 5\r\n", "MSG a 1 1\r\nabc", "PINGPING\r\n"}) {
    const Steps steps = StepsOf(said);
    EXPECT_THAT(steps, ElementsAre(Pair(Step::kFault, ""))) << said;
    EXPECT_EQ(StepsOf(said, 1), steps) << said;
  }
}

TEST(NatsReader, BoundsALineAndLetsAnInfoBeLonger) {
  const auto faulty = [](const std::string& said) {
    const Steps steps = StepsOf(said, 1000);
    return !steps.empty() && steps.back().first == Step::kFault;
  };
  EXPECT_FALSE(faulty("-ERR '" + std::string(4000, 'x') + "'\r\n"));
  EXPECT_TRUE(faulty("-ERR '" + std::string(5000, 'x') + "'\r\n"));
  EXPECT_TRUE(faulty("-ERR '" + std::string(5000, 'x'))) << "before its end comes";
  EXPECT_FALSE(faulty("INFO " + std::string(60'000, 'x') + "\r\n"));
  EXPECT_TRUE(faulty("INFO " + std::string(66'000, 'x')));
}

TEST(NatsReader, AFaultIsFinal) {
  NatsReader reader(kLongest);
  std::string_view in = "nonsense\r\nPING\r\n";
  EXPECT_EQ(reader.Take(in), Step::kFault);
  EXPECT_EQ(reader.Take(in), Step::kFault);
}

}  // namespace
}  // namespace fathom
