#include "diagnose/lint/plan.h"

#include <gtest/gtest.h>

#include <array>

namespace fathom {
namespace {

TEST(Plan, ComparesVersionsByTheirNumbers) {
  constexpr std::array kWanted = {1u, 5u};
  for (const char* version : {"1.5", "1.5.0", "v1.5.0-rc1", "1.10.0", "2.0", "2"}) {
    EXPECT_TRUE(AtLeast(version, kWanted)) << version;
  }
  for (const char* version : {"", "1", "1.4.9", "0.9.0", "my-tag", "latest", "v"}) {
    EXPECT_FALSE(AtLeast(version, kWanted)) << version;
  }
}

TEST(Plan, SelectsPodsByAllLabelsOfTheService) {
  Program program;
  program.labels = {{"app", "vllm"}, {"tier", "gpu"}};
  NamedService service;
  EXPECT_FALSE(Selects(service, program));  // a Service without a selector has no pods of its own
  service.selector = {{"app", "vllm"}};
  EXPECT_TRUE(Selects(service, program));
  service.selector["zone"] = "a";
  EXPECT_FALSE(Selects(service, program));
}

TEST(Plan, KeepsServicesToTheirNamespace) {
  Program program;
  program.labels = {{"app", "vllm"}};
  program.network_namespace = "one";
  NamedService service;
  service.selector = {{"app", "vllm"}};
  service.network_namespace = "two";
  EXPECT_FALSE(Selects(service, program));
  service.network_namespace = "";
  EXPECT_TRUE(Selects(service, program));
}

}  // namespace
}  // namespace fathom
