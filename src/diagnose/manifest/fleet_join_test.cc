#include "diagnose/manifest/fleet_join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Program ProgramIn(std::string file, ProgramRole role, EngineKind engine = EngineKind::kUnknown) {
  Program program;
  program.role = role;
  program.engine = engine;
  program.graph = file;
  program.place = {std::move(file), 1};
  return program;
}

Program RouterIn(std::string file) { return ProgramIn(std::move(file), ProgramRole::kFathom); }

Program EngineIn(std::string file, EngineKind engine = EngineKind::kVllm) {
  return ProgramIn(std::move(file), ProgramRole::kEngine, engine);
}

std::vector<std::string> NamesOf(const JoinedFiles& joined) {
  std::vector<std::string> names;
  for (const auto& [name, graph] : joined) names.push_back(name);
  return names;
}

std::vector<std::string> Halves(std::vector<Program> programs, JoinScope scope) {
  return NamesOf(JoinHalves({std::move(programs), {}}, scope));
}

TEST(FleetJoin, JoinsTheHalvesOfAFolder) {
  Deployment deployment{{RouterIn("a/router.yaml"), EngineIn("a/engine.yaml"),
                         EngineIn("b/engine.yaml"), EngineIn("engine.yaml")},
                        {}};
  const JoinedFiles joined = JoinHalves(deployment, JoinScope::kFolder);
  EXPECT_THAT(NamesOf(joined), ElementsAre("a/engine.yaml", "a/router.yaml"));
  Join(joined, deployment);
  EXPECT_EQ(deployment.programs[0].graph, deployment.programs[1].graph);
  EXPECT_EQ(deployment.programs[2].graph, "b/engine.yaml");
}

TEST(FleetJoin, LeavesAFolderOfSeveralFleetsAlone) {
  EXPECT_THAT(Halves({RouterIn("r1"), RouterIn("r2"), EngineIn("e")}, JoinScope::kFolder),
              IsEmpty());
  EXPECT_THAT(Halves({RouterIn("r"), EngineIn("e1"), EngineIn("e2", EngineKind::kSglang)},
                     JoinScope::kFolder),
              IsEmpty());
  EXPECT_THAT(Halves({EngineIn("e1"), EngineIn("e2")}, JoinScope::kFolder), IsEmpty());
}

TEST(FleetJoin, JoinsAllThatSomebodyHasNamed) {
  EXPECT_THAT(Halves({RouterIn("a/r"), EngineIn("b/e"), EngineIn("c/e", EngineKind::kSglang)},
                     JoinScope::kAll),
              ElementsAre("a/r", "b/e", "c/e"));
}

TEST(FleetJoin, LeavesFilesThatHoldBothAlone) {
  for (const JoinScope scope : {JoinScope::kAll, JoinScope::kFolder}) {
    EXPECT_THAT(Halves({RouterIn("whole"), EngineIn("whole"), RouterIn("r"), EngineIn("e")}, scope),
                ElementsAre("e", "r"));
  }
}

TEST(FleetJoin, LeavesGraphsThatHaveANameOfTheirOwnAlone) {
  Program engine = EngineIn("e.yaml");
  engine.graph = "DynamoGraphDeployment g";
  EXPECT_THAT(Halves({RouterIn("r.yaml"), engine}, JoinScope::kFolder), IsEmpty());
}

}  // namespace
}  // namespace fathom
