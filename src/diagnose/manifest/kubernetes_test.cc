#include "diagnose/manifest/kubernetes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/manifest/deployment_reader.h"

namespace fathom {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Program> ProgramsOfYaml(std::string text) {
  const SourceFile file{"a.yaml", std::move(text)};
  ReadDeployment read = ReadDeploymentFiles({&file, 1});
  EXPECT_THAT(read.unread, IsEmpty());
  return std::move(read.deployment.programs);
}

// An object whose pod runs vLLM, and the kind of its maker.
std::string Object(std::string_view kind, std::string_view name, std::string_view maker,
                   std::string_view spec = "") {
  std::string text = "---\napiVersion: v1\nkind: " + std::string(kind) +
                     "\nmetadata:\n  name: " + std::string(name) + "\n";
  if (!maker.empty()) text += "  ownerReferences: [{kind: " + std::string(maker) + "}]\n";
  return text + "spec: {" + std::string(spec) +
         "template: {spec: {containers: [{name: v, image: 'vllm/vllm-openai:v0.11.2'}]}}}\n";
}

std::vector<std::string> ProgramNames(const std::string& text) {
  std::vector<std::string> names;
  for (const Program& program : ProgramsOfYaml(text)) names.push_back(program.name);
  return names;
}

TEST(Kubernetes, LeavesOutWhatAnObjectThatIsHereHasMade) {
  EXPECT_THAT(ProgramNames(Object("StatefulSet", "made", "LeaderWorkerSet") +
                           Object("LeaderWorkerSet", "written", "")),
              ElementsAre("LeaderWorkerSet written, container v"));
}

TEST(Kubernetes, KeepsWhatAnObjectThatIsNotHereHasMade) {
  EXPECT_THAT(ProgramNames(Object("Deployment", "made", "LLMInferenceService")),
              ElementsAre("Deployment made, container v"));
}

TEST(Kubernetes, LeavesOutTheCopiesThatControllersKeep) {
  EXPECT_THAT(ProgramNames(Object("ReplicaSet", "copy", "Deployment") +
                           Object("Deployment", "written", "")),
              ElementsAre("Deployment written, container v"));
  EXPECT_THAT(ProgramNames(Object("StatefulSet", "a", "Pod")), IsEmpty());
}

TEST(Kubernetes, ReadsTheCopiesWhereThereIsNothingElse) {
  EXPECT_THAT(ProgramNames(Object("ReplicaSet", "a", "Deployment")),
              ElementsAre("ReplicaSet a, container v"));
  EXPECT_THAT(ProgramNames(Object("ReplicaSet", "a", "")),
              ElementsAre("ReplicaSet a, container v"));
}

TEST(Kubernetes, LeavesOutWhatIsScaledToNothing) {
  EXPECT_THAT(ProgramNames(Object("Deployment", "a", "", "replicas: 0, ")), IsEmpty());
}

TEST(Kubernetes, KnowsWhatDecodeWorkersAre) {
  const auto duty = [](const std::string& flags) {
    const auto programs = ProgramsOfYaml(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"
        "    - {name: v, image: 'vllm/vllm-openai:v0.11.2', args: [--model=m" +
        flags + "]}\n");
    return programs.empty() ? std::nullopt : std::optional(programs[0].duty);
  };
  EXPECT_EQ(duty(""), Duty::kBoth);
  EXPECT_EQ(duty(", --is-prefill-worker"), Duty::kPrefill);
  EXPECT_EQ(duty(", --is-decode-worker"), Duty::kDecode);
  EXPECT_EQ(duty(", --disaggregation-mode, prefill"), Duty::kPrefill);
  EXPECT_EQ(duty(", --disaggregation-mode=decode"), Duty::kDecode);
  EXPECT_EQ(duty(", --disaggregation-mode=prefill_and_decode"), Duty::kBoth);
}

TEST(Kubernetes, KnowsWhatDecodeWorkersOfAGraphAre) {
  const auto programs = ProgramsOfYaml(
      "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: g}\n"
      "spec:\n  backendFramework: vllm\n  services:\n"
      "    A: {componentType: worker, subComponentType: decode}\n"
      "    B: {type: prefill}\n    C: {componentType: worker}\n");
  ASSERT_EQ(programs.size(), 3u);
  EXPECT_EQ(programs[0].duty, Duty::kDecode);
  EXPECT_EQ(programs[1].duty, Duty::kPrefill);
  EXPECT_EQ(programs[2].duty, Duty::kBoth);
}

}  // namespace
}  // namespace fathom
