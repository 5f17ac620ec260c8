#include "router/gateway/files_belief.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

constexpr ParityVerdict kVerdicts[] = {ParityVerdict::kUnknown, ParityVerdict::kAgrees,
                                       ParityVerdict::kDiffers, ParityVerdict::kCannotAsk};

TEST(FilesBelief, TakesTheOperatorsWord) {
  for (const ParityVerdict verdict : kVerdicts) {
    EXPECT_TRUE(FilesBelief::Uses(FilesOrigin::kNamed, verdict, true));
    EXPECT_TRUE(FilesBelief::Uses(FilesOrigin::kDownloaded, verdict, true));
  }
}

TEST(FilesBelief, HearsTheEngineAboutFilesThatWereFound) {
  const auto uses = [](ParityVerdict verdict, bool may_ask) {
    return FilesBelief::Uses(FilesOrigin::kFound, verdict, may_ask);
  };
  EXPECT_TRUE(uses(ParityVerdict::kAgrees, true));
  EXPECT_TRUE(uses(ParityVerdict::kCannotAsk, true));
  EXPECT_FALSE(uses(ParityVerdict::kDiffers, true));
  EXPECT_FALSE(uses(ParityVerdict::kDiffers, false));
  EXPECT_FALSE(uses(ParityVerdict::kUnknown, true));
  EXPECT_TRUE(uses(ParityVerdict::kUnknown, false)) << "there is no answer to wait for";
}

}  // namespace
}  // namespace fathom
