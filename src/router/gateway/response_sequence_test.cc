#include "router/gateway/response_sequence.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

TEST(ResponseSequenceTest, GoesOnAfterTheLastEvent) {
  ResponseSequence sequence;
  EXPECT_EQ(sequence.next(), 0u);
  sequence.Read("data: {\"sequence_number\":3}\n\ndata: {\"sequence_number\": 4,\"x\":1}\n\n");
  EXPECT_EQ(sequence.next(), 5u);
  sequence.Read("data: {\"text\":\"\\\"sequence_number\\\":9\"}\n\n");
  EXPECT_EQ(sequence.next(), 5u);
}

TEST(ResponseSequenceTest, IsUnchangedByWhatIsNoNumber) {
  ResponseSequence sequence;
  sequence.Read("data: {\"sequence_number\":7}\n\n");
  for (const char* const bad :
       {"\"sequence_number\":", "\"sequence_number\":-1",
        "\"sequence_number\":99999999999999999999999", "\"sequence_number\":18446744073709551615",
        "\"sequence_number\":null"}) {
    sequence.Read(bad);
    EXPECT_EQ(sequence.next(), 8u) << bad;
    ResponseSequence together;
    together.Read("{\"sequence_number\":7}" + std::string(bad));
    EXPECT_EQ(together.next(), 8u) << "however the events are split: " << bad;
  }
}

}  // namespace
}  // namespace fathom
