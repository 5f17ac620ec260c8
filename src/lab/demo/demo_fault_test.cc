#include "lab/demo/demo_fault.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

using std::chrono::seconds;

TEST(DemoFault, GoesFromBrokenToDoubtedToRepairedToTrusted) {
  FaultMoment fault;
  fault.Look("event_gap", 100, seconds(1));
  EXPECT_EQ(fault.stage, FaultStage::kNone) << "nothing was broken";
  fault.Break("mock-2", 0.75, 1000, seconds(10));
  fault.Look("", 1100, seconds(11));
  EXPECT_EQ(fault.stage, FaultStage::kBroken);
  fault.Look("event_gap", 1500, seconds(12));
  EXPECT_EQ(fault.stage, FaultStage::kDoubted);
  EXPECT_EQ(fault.cause, "event_gap");
  EXPECT_TRUE(fault.losing());
  fault.Repair(seconds(20));
  fault.Look("event_gap", 3000, seconds(25));
  EXPECT_EQ(fault.stage, FaultStage::kRepaired);
  fault.Look("", 4000, seconds(31));
  EXPECT_EQ(fault.stage, FaultStage::kTrusted);
  EXPECT_EQ(fault.trusted_at, seconds(31));
  fault.Look("", 9000, seconds(60));
  EXPECT_EQ(fault.recomputed, 3000u) << "what comes after the fault does not count";
}

TEST(DemoFault, DoesNotTakeTheTrustFromBeforeTheFaultForItsEnd) {
  FaultMoment fault;
  fault.Break("mock-0", 0.5, 0, seconds(10));
  fault.Repair(seconds(10));
  fault.Look("", 0, seconds(11));
  EXPECT_EQ(fault.stage, FaultStage::kRepaired);
  fault.Look("event_gap", 0, seconds(12));
  fault.Look("", 0, seconds(22));
  EXPECT_EQ(fault.stage, FaultStage::kTrusted);
}

TEST(DemoFault, IsRepairedOnlyIfSomethingIsBroken) {
  FaultMoment fault;
  fault.Repair(seconds(1));
  EXPECT_EQ(fault.stage, FaultStage::kNone);
}

}  // namespace
}  // namespace fathom
