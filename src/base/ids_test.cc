#include "base/ids.h"

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>

namespace fathom {
namespace {

TEST(WorkerId, IsTheSameForTheSameUrlInEveryProcess) {
  // Fixed values: dashboards and scripts store these numbers.
  EXPECT_EQ(WorkerId::OfUrl("http://127.0.0.1:8000").value(), 7978575876015422u);
  EXPECT_EQ(WorkerId::OfUrl("http://127.0.0.1:8000"), WorkerId::OfUrl("http://127.0.0.1:8000"));
}

TEST(WorkerId, DiffersBetweenUrlsAndFitsIntoAJavaScriptNumber) {
  std::unordered_set<WorkerId> ids;
  for (int port = 1; port <= 65535; ++port) {
    const WorkerId id = WorkerId::OfUrl("http://10.0.0.1:" + std::to_string(port));
    EXPECT_LT(id.value(), uint64_t{1} << 53);
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 65535u);
}

TEST(WorkerId, IsComparedByValue) {
  EXPECT_EQ(WorkerId(), WorkerId(0));
  EXPECT_LT(WorkerId(1), WorkerId(2));
}

}  // namespace
}  // namespace fathom
