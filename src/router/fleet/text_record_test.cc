#include "router/fleet/text_record.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

void Serve(TextRecord& record, int times, uint64_t found) {
  for (int i = 0; i < times; ++i) record.Served(1000, found);
}

TEST(TextRecord, BelievesUntilEnoughWasSeen) {
  TextRecord record;
  EXPECT_EQ(record.credit(), 1);
  Serve(record, TextRecord::kLeast - 1, 1);
  EXPECT_EQ(record.credit(), 1);
  Serve(record, 1, 1);
  EXPECT_EQ(record.credit(), 0);
}

TEST(TextRecord, IsTheShareThatCameTrue) {
  TextRecord record;
  Serve(record, 200, 300);
  EXPECT_NEAR(record.credit(), 0.45, 0.01);
  Serve(record, 200, 700);
  EXPECT_EQ(record.credit(), 1) << "two thirds are enough";
  Serve(record, 200, 5000);
  EXPECT_NEAR(record.credit(), 1, 0.01) << "more than was assumed is not more than true";
}

TEST(TextRecord, TakesAFewReportsOfNothingForPreemptions) {
  TextRecord record;
  for (int i = 0; i < 20; ++i) {
    for (unsigned k = 0; k + 1 < TextRecord::kNothing; ++k) EXPECT_FALSE(record.Served(1000, 0));
    EXPECT_TRUE(record.Served(1000, 1000));
  }
  EXPECT_EQ(record.credit(), 1);
  Serve(record, 80, 0);
  EXPECT_EQ(record.credit(), 0) << "an engine that caches nothing";
}

TEST(TextRecord, LeavesADoubtLaterThanItEntersOne) {
  TextRecord record;
  Serve(record, 200, 100);
  EXPECT_EQ(record.credit(), 0);
  Serve(record, 200, 400);
  EXPECT_EQ(record.credit(), 0) << "not yet";
  Serve(record, 200, 600);
  EXPECT_NEAR(record.credit(), 0.9, 0.01);
  Serve(record, 200, 400);
  EXPECT_NEAR(record.credit(), 0.6, 0.01);
}

}  // namespace
}  // namespace fathom
